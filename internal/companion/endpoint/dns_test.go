package endpoint

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// coreDNS runs the real CoreDNS at a port of loopback.
func coreDNS(t *testing.T, corefile string) netip.AddrPort {
	t.Helper()
	testkit.Live(t)
	program := testkit.Tool(t, "coredns")
	addr := daemon.FreePort(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "Corefile")
	testkit.Must(t, os.WriteFile(file, []byte(strings.ReplaceAll(corefile, "PORT", fmt.Sprint(addr.Port()))), 0o600))
	p, err := process.Start("coredns", exec.Command(program, "-conf", file), filepath.Join(dir, "log"))
	testkit.Must(t, err)
	t.Cleanup(func() { p.Kill() })
	question := new(dns.Msg).SetQuestion("await.", dns.TypeA)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		udp, _, err := (&dns.Client{Timeout: patience}).Exchange(question, addr.String())
		tcp, tcpErr := net.Dial("tcp", addr.String())
		if tcpErr == nil {
			tcp.Close()
		}
		if err == nil && udp != nil && tcpErr == nil {
			return addr
		}
		if p.Ended() || time.Now().After(deadline) {
			t.Fatalf("CoreDNS does not answer: %v, %v\n%s", err, tcpErr, p.Output())
		}
	}
}

// many returns a name with more addresses than fit into one UDP answer.
func many() string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "192.0.2.%d many.example.com\n", i)
	}
	return b.String()
}

// Answers of the real CoreDNS, and the resulting report.
func TestNameserver(t *testing.T) {
	server := coreDNS(t, `
example.com:PORT {
	bind 127.0.0.1
	hosts {
		192.0.2.17 api.demo.example.com
		2001:db8::17 api.demo.example.com
		192.0.2.18 four.example.com
		`+many()+`
	}
	template ANY ANY alias.example.com {
		answer "{{ .Name }} 30 IN CNAME four.example.com."
	}
	template ANY ANY nowhere.example.com {
		rcode NXDOMAIN
	}
	template ANY ANY empty.example.com {
		rcode NOERROR
	}
}
broken:PORT {
	bind 127.0.0.1
	template ANY ANY {
		rcode SERVFAIL
	}
}
.:PORT {
	bind 127.0.0.1
	template ANY ANY {
		rcode REFUSED
	}
}
`)
	addr := netip.MustParseAddr
	tests := []struct {
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
	}
	for _, tt := range tests {
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
