package attack

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/vrrp"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
)

var families = map[string]struct{ host, victim, other, vip string }{
	"IPv4": {"192.0.2.66/24", "192.0.2.11/24", "192.0.2.12", "192.0.2.5"},
	"IPv6": {"2001:db8::66/64", "2001:db8::11/64", "2001:db8::12", "2001:db8::5"},
}

// What comes to a node, by unicast and by multicast, is what was asked for: its source,
// TTL and advertisement, and each packet in turn.
func TestFloodArrives(t *testing.T) {
	testkit.Live(t)
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			network := daemon.NewNetwork(t)
			host, victim := daemon.AddNode(t, network, "host", f.host), daemon.AddNode(t, network, "victim", f.victim)
			peer, vip, to := netip.MustParseAddr(f.other), netip.MustParseAddr(f.vip), netip.MustParsePrefix(f.victim).Addr()
			heard := listen(t, victim.Do, to.Is6())
			for _, to := range []netip.Addr{to, VRRPGroup(to.Is6())} {
				v := VRRP{Version: 3, Interval: 10, TTL: 10, Source: Peer}
				flood, err := Start(host, 1000, v.Packet(97, vip, peer, to), v.Packet(98, vip, peer, to))
				if err != nil {
					t.Fatal(err)
				}
				defer flood.Stop()
				got := map[uint8]bool{}
				testkit.Await(t, "both packets to "+to.String(), func() bool {
					a, source, dest := heard()
					if a == nil || dest != to {
						return false
					}
					if source != peer || a.Priority != highest || a.Version != 3 || !reflect.DeepEqual(a.VIPs, []netip.Addr{vip}) {
						t.Fatalf("from %v: %+v", source, a)
					}
					got[a.RouterID] = true
					return got[97] && got[98]
				})
				flood.Stop()
				flood.Stop()
				if flood.Sent() < 2 {
					t.Errorf("%d packets were sent", flood.Sent())
				}
			}
		})
	}
}

// listen opens a socket for all packets that a link takes in; what it returns gives the
// next advertisement, nil if there is none yet.
func listen(t *testing.T, do func(func() error) error, ipv6 bool) func() (a *vrrp.Advert, source, dest netip.Addr) {
	t.Helper()
	protocol, length, from, size := uint16(unix.ETH_P_IP), 20, 12, 4
	if ipv6 {
		protocol, length, from, size = unix.ETH_P_IPV6, 40, 8, 16
	}
	var fd int
	err := do(func() (err error) {
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol<<8|protocol>>8))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 10_000}); err != nil {
		t.Fatal(err)
	}
	return func() (*vrrp.Advert, netip.Addr, netip.Addr) {
		data := make([]byte, 2000)
		n, _, err := unix.Recvfrom(fd, data, 0)
		if err != nil || n < length || data[9] != protocolVRRP && data[6] != protocolVRRP {
			return nil, netip.Addr{}, netip.Addr{}
		}
		if ttl := data[map[bool]int{false: 8, true: 7}[ipv6]]; ttl != 10 {
			return nil, netip.Addr{}, netip.Addr{}
		}
		source, _ := netip.AddrFromSlice(data[from : from+size])
		dest, _ := netip.AddrFromSlice(data[from+size : from+2*size])
		a, err := vrrp.ParseAdvert(source, data[length:n])
		if err != nil {
			t.Fatalf("%x: %v", data[:n], err)
		}
		return a, source, dest
	}
}

func TestStartRefuses(t *testing.T) {
	if _, err := Start(nil, 1); err == nil {
		t.Error("a flood of nothing starts")
	}
	if _, err := Start(nil, 0, Packet{}); err == nil {
		t.Error("a flood of no packets a second starts")
	}
}

// Records of mDNS are as many as they say, and one packet of them is one that is read
// (RFC 6762 section 17).
func TestMDNS(t *testing.T) {
	const largest = 9000
	for _, m := range MDNSs {
		list, err := m.Packets(16)
		if err != nil || len(list) != 32 {
			t.Fatalf("%s: %d packets: %v", m.Name, len(list), err)
		}
		seen := map[string]bool{}
		for _, p := range list {
			msg := new(dns.Msg)
			if err := msg.Unpack(p.Data); err != nil || len(p.Data) > largest {
				t.Fatalf("%s: %d bytes: %v", m.Name, len(p.Data), err)
			}
			if len(msg.Answer) != 3*m.Hosts || msg.Answer[0].Header().Ttl != m.TTL || !msg.Response {
				t.Errorf("%s: %d records: %v", m.Name, len(msg.Answer), msg.Answer[0])
			}
			seen[msg.Answer[0].Header().Name] = true
		}
		if len(seen) != 16 {
			t.Errorf("%s: packets are about %v", m.Name, seen)
		}
	}
}

// A seed gives one Node, as JSON has it, and others give others.
func TestNewNode(t *testing.T) {
	made := func(seed uint64) string {
		data, err := json.Marshal(NewNode(rand.New(rand.NewPCG(seed, 1)), "192.0.2.%d", "192.0.2.11"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first, again, other := made(1), made(1), made(2)
	if first != again || first == other {
		t.Error("a seed gives no Node of its own")
	}
}

// No packet is one that a node of the group could have sent.
func TestVRRPsAreWrong(t *testing.T) {
	names := map[string]bool{}
	for _, v := range VRRPs {
		if names[v.Name] || v.Name == "" {
			t.Errorf("%q is there twice", v.Name)
		}
		names[v.Name] = true
		if v.Source == Peer && v.TTL == 255 && v.Version == 3 && !v.Broken {
			t.Errorf("%s is a peer's: nothing on a node can tell it from that", v.Name)
		}
	}
}
