package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseHost(t *testing.T) {
	for _, tt := range []struct {
		in, host string
		port     uint16
	}{
		{"api.demo.example.com", "api.demo.example.com", 6443},
		{"API.demo.example.com.:443", "api.demo.example.com", 443},
		{"192.0.2.17", "192.0.2.17", 6443},
		{"192.0.2.17:8443", "192.0.2.17", 8443},
		{"2001:db8::17", "2001:db8::17", 6443},
		{"[2001:db8::17]", "2001:db8::17", 6443},
		{"[2001:DB8:0::17]:443", "2001:db8::17", 443},
		{"https://api.demo.example.com:6443/", "api.demo.example.com", 6443},
		{"https://api.demo.example.com/readyz", "api.demo.example.com", 6443},
		{"under_score.example.com", "under_score.example.com", 6443},
	} {
		host, port, err := ParseHost(tt.in)
		if err != nil || host != tt.host || port != tt.port {
			t.Errorf("%q: %q %d %v, want %q %d", tt.in, host, port, err, tt.host, tt.port)
		}
	}
	for in, want := range map[string]string{
		"":                      "the host is missing",
		":6443":                 "the host is missing",
		"a:":                    "the port is missing",
		"a:0":                   "a port is a number",
		"a:65536":               "a port is a number",
		"a:https":               "a port is a number",
		"2001:db8::17:6443:x":   "[ADDRESS]:PORT",
		"http://a":              "only https",
		"a b":                   "not a DNS name",
		"a/b":                   "not a DNS name",
		"a\x1b[31m":             "not a DNS name",
		strings.Repeat("a", 64): "not a DNS name",
	} {
		if host, port, err := ParseHost(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %d %v, want %q", in, host, port, err, want)
		}
	}
}

func TestParsePin(t *testing.T) {
	addr := netip.MustParseAddr
	for _, tt := range []struct {
		in   string
		want Pin
	}{
		{"api.example.com:6443:192.0.2.17", Pin{"api.example.com", 6443, []netip.Addr{addr("192.0.2.17")}}},
		{"API.example.com.:6443:[2001:db8::17],192.0.2.17", Pin{"api.example.com", 6443, []netip.Addr{addr("2001:db8::17"), addr("192.0.2.17")}}},
		{"*:443:2001:db8::17", Pin{"*", 443, []netip.Addr{addr("2001:db8::17")}}},
	} {
		got, err := ParsePin(tt.in)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", tt.in, err, diff)
		}
	}
	for _, in := range []string{"", "a", "a:6443", "a:0:192.0.2.1", "a:x:192.0.2.1", ":1:192.0.2.1", "a:6443:", "a:6443:b", "a:6443:192.0.2.1,"} {
		if p, err := ParsePin(in); err == nil {
			t.Errorf("%q: %+v", in, p)
		}
	}
}

func TestParseNameserver(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.53": "192.0.2.53:53", "192.0.2.53:5353": "192.0.2.53:5353", "2001:db8::53": "[2001:db8::53]:53", "[2001:db8::53]": "[2001:db8::53]:53", "[2001:db8::53]:5353": "[2001:db8::53]:5353",
	} {
		if got, err := ParseNameserver(in); err != nil || got.String() != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "dns.example.com", "192.0.2.53:0", "192.0.2.53:x"} {
		if got, err := ParseNameserver(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestReadAuthorities(t *testing.T) {
	for _, in := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if a, err := ReadAuthorities([]byte(in)); err == nil {
			t.Errorf("%q: %+v", in, a)
		}
	}
}

// records holds the records of a zone by name.
var records = map[string][]string{
	"api.demo.example.com.": {"A 192.0.2.17", "AAAA 2001:db8::17"},
	"four.example.com.":     {"A 192.0.2.18"},
	"alias.example.com.":    {"CNAME four.example.com."},
	"empty.example.com.":    {},
}

// answer answers from the records, with more than fits into UDP for many.example.com, with
// NXDOMAIN for the other names of the zone, and with errors for others.
func answer(w dns.ResponseWriter, q *dns.Msg) {
	reply, name, kind := new(dns.Msg).SetReply(q), q.Question[0].Name, dns.TypeToString[q.Question[0].Qtype]
	add := func(name string, list []string) {
		for _, r := range list {
			if strings.HasPrefix(r, kind+" ") || strings.HasPrefix(r, "CNAME ") {
				rr, err := dns.NewRR(name + " 30 IN " + r)
				if err != nil {
					panic(err)
				}
				reply.Answer = append(reply.Answer, rr)
			}
		}
	}
	list, known := records[name]
	switch {
	case name == "alias.example.com.":
		add(name, list)
		add("four.example.com.", records["four.example.com."])
	case name == "many.example.com.":
		for i := range 200 {
			add(name, []string{fmt.Sprintf("A 192.0.2.%d", i)})
		}
		if w.LocalAddr().Network() == "udp" {
			reply.Truncate(1232)
		}
	case known:
		add(name, list)
	case strings.HasSuffix(name, ".example.com."):
		reply.Rcode = dns.RcodeNameError
	case strings.HasSuffix(name, ".broken."):
		reply.Rcode = dns.RcodeServerFailure
	default:
		reply.Rcode = dns.RcodeRefused
	}
	w.WriteMsg(reply)
}

// nameServer serves the records on a port of loopback.
func nameServer(t *testing.T) netip.AddrPort {
	t.Helper()
	l := listen(t)
	conn, err := net.ListenPacket("udp", l.Addr().String())
	for err != nil { // another program has that port of UDP
		l = listen(t)
		conn, err = net.ListenPacket("udp", l.Addr().String())
	}
	t.Cleanup(func() { conn.Close() })
	for _, s := range []*dns.Server{{Listener: l}, {PacketConn: conn}} {
		s.Handler = dns.HandlerFunc(answer)
		go s.ActivateAndServe()
	}
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Answers of a name server, and the resulting report.
func TestNameserver(t *testing.T) {
	server := nameServer(t)
	addr := netip.MustParseAddr
	for _, tt := range []struct {
		host   string
		server netip.AddrPort
		want   []netip.Addr
		cname  string
		code   Code
		says   string
	}{
		{"api.demo.example.com", server, []netip.Addr{addr("192.0.2.17"), addr("2001:db8::17")}, "", "", ""},
		{"four.example.com", server, []netip.Addr{addr("192.0.2.18")}, "", "", ""},
		{"nowhere.example.com", server, nil, "", codeNoSuchName, "nowhere.example.com does not exist, according to "},
		{"empty.example.com", server, nil, "", codeNoSuchName, "empty.example.com has no address"},
		{"x.broken", server, nil, "", codeNoDNS, "answers SERVFAIL"},
		{"x.example.net", server, nil, "", codeNoDNS, "answers REFUSED"},
		{"api.demo.example.com", netip.AddrPortFrom(addr("127.0.0.1"), unused(t)), nil, "", codeNoDNS, "does not answer: connection refused"},
	} {
		t.Run(tt.host, func(t *testing.T) {
			target := Target{Host: tt.host, Port: 6443, Nameserver: tt.server, Timeout: patience}
			d, finding := target.resolve(context.Background())
			if diff := cmp.Diff(tt.want, d.Addresses, cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" || d.By != tt.server.String() {
				t.Errorf("by %s\n%s", d.By, diff)
			}
			var got Finding
			if finding != nil {
				got = *finding
			}
			if got.Code != tt.code || !strings.Contains(got.What, tt.says) {
				t.Errorf("%+v, want %s %q", got, tt.code, tt.says)
			}
		})
	}
	for host, want := range map[string]DNS{"many.example.com": {Addresses: make([]netip.Addr, 200)}, "alias.example.com": {Addresses: make([]netip.Addr, 1), CNAME: "four.example.com"}} {
		target := Target{Host: host, Port: 6443, Nameserver: server, Timeout: patience}
		if d, finding := target.resolve(context.Background()); len(d.Addresses) != len(want.Addresses) || d.CNAME != want.CNAME || finding != nil {
			t.Errorf("%s: %+v, %+v", host, d, finding)
		}
	}
}

// A name server that does not answer.
func TestSilentNameserver(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer conn.Close()
	target := Target{Host: apiName, Port: 6443, Timeout: briefly, Nameserver: conn.LocalAddr().(*net.UDPAddr).AddrPort()}
	if _, finding := target.resolve(context.Background()); finding == nil || finding.Code != codeNoDNS {
		t.Errorf("%+v", finding)
	}
}

// Names of this machine resolve without a name server.
func TestSystem(t *testing.T) {
	target := Target{Host: "localhost", Port: 6443, Timeout: patience}
	d, finding := target.resolve(context.Background())
	if finding != nil || d.By != "system" || len(d.Addresses) == 0 {
		t.Errorf("%+v, %+v", d, finding)
	}
}
