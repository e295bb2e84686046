package listener_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

const instance = `vrrp_instance %s {
  interface eth0
  version %d
  state BACKUP
  virtual_router_id %d
  priority 100
  advert_int %s
  %s
  virtual_ipaddress { %s }
}
`

// sender is an instance of a real keepalived.
type sender struct {
	name     string
	version  int
	id       int
	interval string
	unicast  string
	vip      string
}

const toListener = "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.9 }"

// speak returns a node on one network with a real keepalived.
func speak(t *testing.T, instances ...sender) *netns.Node {
	t.Helper()
	network := daemon.NewNetwork(t)
	node := daemon.AddNode(t, network, "listener", "192.0.2.9/24", "2001:db8::9/64")
	speaker := daemon.NewHost(t, daemon.AddNode(t, network, "speaker", "192.0.2.11/24", "2001:db8::11/64"))
	var conf strings.Builder
	for _, i := range instances {
		fmt.Fprintf(&conf, instance, i.name, i.version, i.id, i.interval, i.unicast, i.vip)
	}
	speaker.Write("/etc/keepalived/keepalived.conf", []byte(conf.String()))
	speaker.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog")
	return node
}

// Real keepalived of both versions, over both families, multicast, and unicast to the host that
// listens: all are received from another namespace, and no other sender.
func TestScan(t *testing.T) {
	node := speak(t,
		sender{"two", 2, 51, "1", "", "192.0.2.51/24"},
		sender{"three", 3, 52, "0.1", "", "192.0.2.52/24"},
		sender{"six", 3, 53, "0.2", "", "2001:db8::53/64"},
		sender{"to", 3, 54, "0.1", toListener, "192.0.2.54/24"},
		sender{"others", 3, 55, "0.1", "unicast_src_ip 192.0.2.11\n  unicast_peer { 192.0.2.77 }", "192.0.2.55/24"})
	var s *listener.Scanner
	testkit.Must(t, node.Do(func() (err error) {
		if s, err = listener.Open("no-such"); err == nil || !strings.Contains(err.Error(), `no interface "no-such": this host has`) {
			t.Errorf("an interface that is not there: %v", err)
		}
		s, err = listener.Open()
		return err
	}))
	defer s.Close()
	// Rules that keep VRRP from keepalived do not keep it from the listener.
	if out, err := daemon.NewHost(t, node).Run(nil, "nft", "table inet guard { chain input { type filter hook input priority -10; meta l4proto 112 drop; }; }"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testkit.Equal(t, []string{"eth0"}, s.Interfaces)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Listen(ctx) }()
	want := []string{
		"51 IPv4 2 multicast 1000 192.0.2.51",
		"52 IPv4 3 multicast 100 192.0.2.52",
		"53 IPv6 3 multicast 200 2001:db8::53",
		"54 IPv4 3 unicast 100 192.0.2.54",
	}
	seen := func() (out []string) {
		for _, r := range s.Routers() {
			out = append(out, fmt.Sprintf("%d %s %d %s %d %v", r.ID, r.Family, r.Version, r.Mode, r.Interval, r.Addresses[0]))
			from := netip.MustParseAddr("192.0.2.11")
			if r.Interface != "eth0" || r.Priority != 100 || r.Adverts < 1 || r.Source.Is4() && r.Source != from {
				t.Errorf("%+v", r)
			}
		}
		return out
	}
	for ctx.Err() == nil && len(seen()) < len(want) {
		time.Sleep(20 * time.Millisecond)
	}
	testkit.Equal(t, want, seen())
	cancel()
	testkit.Check(t, <-ended)
}

// From real keepalived, a listener on an interface receives its family, multicast and unicast,
// one at an address only packets to that address, and both only packets that pass packet
// filters.
func TestListener(t *testing.T) {
	node := speak(t,
		sender{"three", 3, 52, "0.1", "", "192.0.2.52/24"},
		sender{"six", 3, 53, "0.1", "", "2001:db8::53/64"},
		sender{"to", 3, 54, "0.1", toListener, "192.0.2.54/24"})
	eth0 := func(ip6 bool) func() (*listener.Listener, error) {
		return func() (*listener.Listener, error) { return listener.OnInterface("eth0", ip6) }
	}
	tests := map[string]struct {
		open func() (*listener.Listener, error)
		want map[uint8]netip.Addr // destinations, by virtual router ID
	}{
		"an interface, IPv4": {eth0(false), map[uint8]netip.Addr{52: vrrp.MulticastGroup4, 54: netip.MustParseAddr("192.0.2.9")}},
		"an interface, IPv6": {eth0(true), map[uint8]netip.Addr{53: vrrp.MulticastGroup6}},
		"an address": {func() (*listener.Listener, error) { return listener.AtAddress(netip.MustParseAddr("192.0.2.9")) },
			map[uint8]netip.Addr{54: netip.MustParseAddr("192.0.2.9")}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var l *listener.Listener
			testkit.Must(t, node.Do(func() (err error) { l, err = tt.open(); return err }))
			defer l.Close()
			got := map[uint8]netip.Addr{}
			for count := 0; len(got) < len(tt.want) || count < 10; count++ {
				a, err := l.Receive(ctx)
				if err != nil {
					t.Fatalf("%v; received %v", err, got)
				}
				if a.TTL != 255 || a.Interval != 100*time.Millisecond || a.Priority != 100 || a.Version != 3 || a.Waited < 0 || a.Waited > testkit.Patience {
					t.Errorf("%+v", a)
				}
				got[a.RouterID] = a.Destination
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("received %v, want %v", got, tt.want)
			}
			waiting, stop := context.WithCancel(ctx)
			stop()
			if _, err := l.Receive(waiting); !errors.Is(err, context.Canceled) {
				t.Errorf("after the end of the context: %v", err)
			}
		})
	}
	if err := node.Do(func() error { _, err := listener.OnInterface("no-such", false); return err }); err == nil {
		t.Error("listens on an interface that is not there")
	}
	if err := node.Do(func() error { _, err := listener.AtAddress(netip.MustParseAddr("192.0.2.77")); return err }); err == nil {
		t.Error("listens at an address that is not the host's")
	}
}
