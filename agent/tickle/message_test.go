package tickle

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testkit"
)

// read decodes a message as a peer does.
func read(message []byte) (Clients, error) {
	r := bytes.NewReader(message)
	four, length, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if r.Len() != length {
		return nil, fmt.Errorf("%d bytes, announced %d", r.Len(), length)
	}
	return decode(message[headerSize:], four, vips)
}

// A peer of both families receives each client once; a VIP without clients needs no entry.
func TestMessage(t *testing.T) {
	for _, c := range []struct {
		in    Clients
		four  bool
		want  Clients
		bytes string
	}{
		{Clients{}, true, Clients{}, "VTK\x04\x00\x00\x00\x00"},
		{Clients{api4.Address: {}, api6.Address: {}}, false, Clients{}, "VTK\x06\x00\x00\x00\x00"},
		{
			Clients{api4.Address: {6443: clients("198.51.100.9:1", "198.51.100.9:2")}, api6.Address: {6443: clients("[2001:db8:1::9]:65535")}}, true,
			Clients{api4.Address: {6443: clients("198.51.100.9:1", "198.51.100.9:2")}},
			"VTK\x04\x00\x00\x00\x14\xc0\x00\x02\x05\x19\x2b\x00\x02\xc6\x33\x64\x09\x00\x01\xc6\x33\x64\x09\x00\x02",
		},
		{Clients{api4.Address: {6443: clients("198.51.100.9:1")}, api6.Address: {6443: clients("[2001:db8:1::9]:65535")}}, false, Clients{api6.Address: {6443: clients("[2001:db8:1::9]:65535")}}, ""},
		{Clients{ingress.Address: {80: clients("192.0.2.99:2"), 443: {}}}, true, Clients{ingress.Address: {80: clients("192.0.2.99:2"), 443: {}}}, ""},
	} {
		message := c.in.encode(c.four)
		if c.bytes != "" && string(message) != c.bytes {
			t.Errorf("%v: %x, want %x", c.in, message, c.bytes)
		}
		if got, err := read(message); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %v, %v", c.in, got, err)
		}
	}
}

func TestMessageRefused(t *testing.T) {
	of := func(vip string, port uint16, list ...string) []byte {
		return Clients{addr(vip): {port: clients(list...)}}.encode(addr(vip).Is4())
	}
	ports := Clients{api4.Address: {}}
	for i := range maxPorts + 1 {
		ports[api4.Address][uint16(i+1)] = nil
	}
	one := of("192.0.2.5", 6443, "198.51.100.9:1")
	twice := append(bytes.Clone(one), one[headerSize:]...)
	twice[headerSize-1] *= 2
	for name, c := range map[string]struct {
		message []byte
		want    string
	}{
		"HTTP, as agents of before": {[]byte("PUT /clients HTTP/1.1\r\nHost: 192.0.2.12:9459\r\n\r\n{}"), "not a list of clients"},
		"another family":            {[]byte("VTK\x05\x00\x00\x00\x00"), "not a list of clients"},
		"too long":                  {[]byte("VTK\x04\x7f\x00\x00\x00"), "not a list of clients"},
		"short":                     {[]byte("VTK"), "EOF"},
		"torn":                      {[]byte("VTK\x04\x00\x00\x00\x03\xc0\x00\x02"), "not a list of clients"},
		"torn after the port":       {[]byte("VTK\x04\x00\x00\x00\x07\xc0\x00\x02\x05\x19\x2b\x00"), "not a list of clients"},
		"fewer than announced":      {[]byte("VTK\x04\x00\x00\x00\x08\xc0\x00\x02\x05\x19\x2b\x00\x01"), "truncated message"},
		"no VIP":                    {of("192.0.2.9", 6443, "198.51.100.9:1"), "cannot hold the VIP 192.0.2.9"},
		"port 0":                    {of("192.0.2.5", 0, "198.51.100.9:1"), "port 0"},
		"a port twice":              {twice, "duplicate"},
		"many ports":                {ports.encode(true), "more than 64"},
		"many clients":              {most(MaxClients + 1).encode(true), fmt.Sprintf("more than %d", MaxClients)},
		"port 0 of a client":        {of("192.0.2.5", 6443, "198.51.100.9:0"), "invalid client"},
		"loopback":                  {of("192.0.2.5", 6443, "127.0.0.1:1"), "invalid client"},
		"multicast":                 {of("192.0.2.5", 6443, "224.0.0.1:1"), "invalid client"},
		"broadcast":                 {of("192.0.2.5", 6443, "255.255.255.255:1"), "invalid client"},
		"no address":                {of("192.0.2.5", 6443, "0.0.0.0:1"), "invalid client"},
		"link-local":                {of("2001:db8::5", 6443, "[fe80::9]:1"), "invalid client"},
		"multicast of IPv6":         {of("2001:db8::5", 6443, "[ff02::1]:1"), "invalid client"},
		"IPv4 in IPv6":              {of("2001:db8::5", 6443, "[::ffff:1.2.3.4]:1"), "invalid client"},
	} {
		if got, err := read(c.message); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %s", name, got, err, c.want)
		}
	}
}

// Whatever a peer sends, accepted entries have a possible VIP and client, and take little more
// memory than the message.
func FuzzMessage(f *testing.F) {
	f.Add(Clients{api4.Address: {6443: clients("198.51.100.9:1")}}.encode(true))
	f.Add(Clients{api6.Address: {6443: clients("[2001:db8:1::9]:1")}}.encode(false))
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := read(message)
		if err != nil {
			return
		}
		for vip, ports := range got {
			for port, list := range ports {
				for _, c := range list {
					if !c.Addr().IsGlobalUnicast() || c.Addr().Is4() != vip.Is4() || c.Port() == 0 || port == 0 {
						t.Errorf("%s of %s", c, vip)
					}
				}
			}
		}
		again, err := read(got.encode(message[len(magic)] == 4))
		testkit.Must(t, err)
		testkit.Equal(t, again, got)
	})
}

func addr(s string) netip.Addr       { return netip.MustParseAddr(s) }
func client(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
func clients(s ...string) (out []netip.AddrPort) {
	for _, a := range s {
		out = append(out, client(a))
	}
	return out
}

// Two API VIPs, of which both families are redirected, and one of an ingress controller.
var (
	api4    = VIP{Address: addr("192.0.2.5"), Source: addr("192.0.2.11"), Peers: []netip.Addr{addr("192.0.2.12")}, Redirected: map[uint16]uint16{9445: 6443}}
	api6    = VIP{Address: addr("2001:db8::5"), Source: addr("2001:db8::11"), Peers: []netip.Addr{addr("2001:db8::12")}, Redirected: map[uint16]uint16{9445: 6443}}
	ingress = VIP{Address: addr("192.0.2.7"), Source: addr("192.0.2.11"), Peers: []netip.Addr{addr("192.0.2.13")}}
	vips    = []VIP{api4, api6, ingress}
	own     = []netip.Addr{addr("127.0.0.1"), addr("192.0.2.11"), addr("2001:db8::11")}
)

func TestPick(t *testing.T) {
	open := []netdump.Connection{
		{Own: client("192.0.2.11:9445"), Peer: client("198.51.100.9:40002")}, // redirected
		{Own: client("192.0.2.11:9445"), Peer: client("198.51.100.9:40001")},
		{Own: client("192.0.2.5:6443"), Peer: client("198.51.100.9:40003")}, // opened while HAProxy did not serve
		{Own: client("192.0.2.5:22623"), Peer: client("198.51.100.9:40004")},
		{Own: client("[2001:db8::11]:9445"), Peer: client("[2001:db8:1::9]:40001")},
		{Own: client("192.0.2.7:443"), Peer: client("198.51.100.9:40005")},
		// Neither to a VIP, nor of a client elsewhere.
		{Own: client("192.0.2.11:9445"), Peer: client("192.0.2.11:40006")},
		{Own: client("127.0.0.1:9445"), Peer: client("127.0.0.1:40006")},
		{Own: client("192.0.2.5:6443"), Peer: client("192.0.2.11:40006")},
		{Own: client("192.0.2.11:10250"), Peer: client("198.51.100.9:40007")},
		{Own: client("192.0.2.11:40008"), Peer: client("192.0.2.12:6443")},
		{Own: client("[fe80::11]:9445"), Peer: client("[fe80::9]:40009")},
	}
	for name, tt := range map[string]struct {
		held []netip.Addr
		want Clients
	}{
		"none": {nil, Clients{}},
		"the API's": {[]netip.Addr{api4.Address, api6.Address}, Clients{
			api4.Address: {6443: clients("198.51.100.9:40001", "198.51.100.9:40002", "198.51.100.9:40003"), 22623: clients("198.51.100.9:40004")},
			api6.Address: {6443: clients("[2001:db8:1::9]:40001")},
		}},
		"the ingress controller's": {[]netip.Addr{ingress.Address}, Clients{ingress.Address: {443: clients("198.51.100.9:40005")}}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, tt.want, pick(open, vips, append(tt.held, own...)))
		})
	}
	t.Run("too many", func(t *testing.T) {
		var many []netdump.Connection
		for i := range MaxClients + 10 {
			many = append(many, netdump.Connection{Own: client("192.0.2.5:6443"), Peer: netip.AddrPortFrom(addr("198.51.100.9"), uint16(i+1))})
		}
		got := pick(many, vips, []netip.Addr{api4.Address})
		if n, length := count(got[api4.Address]), len(got.encode(true)); n != MaxClients || length > maxLength {
			t.Errorf("%d clients, %d bytes", n, length)
		}
	})
	t.Run("ports of a program that connects from the VIP", func(t *testing.T) {
		open := []netdump.Connection{{Own: client("192.0.2.5:6443"), Peer: client("198.51.100.9:1")}}
		for i := range 2 * maxPorts {
			open = append(open, netdump.Connection{Own: netip.AddrPortFrom(api4.Address, uint16(40000+i)), Peer: client("198.51.100.9:443")})
		}
		got := pick(open, vips, []netip.Addr{api4.Address})[api4.Address]
		if len(got) != maxPorts || len(got[6443]) != 1 {
			t.Errorf("%d ports, %v", len(got), got[6443])
		}
	})
}
