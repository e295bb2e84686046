package cli

import (
	"crypto/tls"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/companion/endpoint"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testkit"
)

// startAPIServer runs a TLS server with the given status of readyz, and returns the certificate
// of its CA.
func startAPIServer(t *testing.T, readyz int, names ...string) (port string, caPEM []byte) {
	t.Helper()
	ca, err := authority.New("kube-apiserver-lb-signer")
	testkit.Must(t, err)
	pair, err := ca.Serving(names...)
	testkit.Must(t, err)
	cert, err := pair.TLS()
	testkit.Must(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && readyz != http.StatusOK {
			w.WriteHeader(readyz)
			io.WriteString(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n")
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return fmt.Sprint(s.Listener.Addr().(*net.TCPAddr).Port), ca.CertPEM
}

// apiServer is startAPIServer with the CA file in a new current directory.
func apiServer(t *testing.T, readyz int, names ...string) (port string) {
	t.Helper()
	port, ca := startAPIServer(t, readyz, names...)
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"ca.crt": string(ca)})
	return port
}

// nameServer resolves every name to 127.0.0.1, and returns its address.
func nameServer(t *testing.T) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	testkit.Must(t, err)
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		reply := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			reply.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)}}
		}
		w.WriteMsg(reply)
	})}
	go s.ActivateAndServe()
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

// onLoopback rewrites a documented check for a server on loopback that behaves as documented.
func onLoopback(t *testing.T, line string) string {
	t.Helper()
	port, ca := startAPIServer(t, http.StatusOK, "api.demo.example.com")
	testkit.WriteFile(t, "ca.crt", ca)
	words := strings.Fields(line)
	host, _, err := endpoint.ParseHost(words[2])
	testkit.Must(t, err)
	words[2] = host + ":" + port
	if _, err := netip.ParseAddr(host); err == nil {
		words[2] = "127.0.0.1:" + port
	}
	line = strings.ReplaceAll(strings.Join(words, " "), ":6443:192.0.2.17", ":"+port+":127.0.0.1")
	line = strings.ReplaceAll(line, "--nameserver 192.0.2.53", "--nameserver "+nameServer(t))
	if !strings.Contains(line, "--resolve") && !strings.Contains(line, "--nameserver") {
		line += " --resolve *:" + port + ":127.0.0.1"
	}
	return line + " --timeout 1m" // the last of two counts
}

// steady removes the parts of a report that differ between runs.
func steady(text, port string) string {
	text = strings.ReplaceAll(text, port, "PORT")
	text = regexp.MustCompile(`in [\d.]+m?s\n`).ReplaceAllString(text, "in TIME\n")
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(text, "TIME")
	return regexp.MustCompile(`\(\d+ days left\)`).ReplaceAllString(text, "(N days left)")
}

//go:embed testdata/check-endpoint.txt
var wrongEndpoint string

func TestCheckEndpoint(t *testing.T) {
	t.Run("right", func(t *testing.T) {
		port := apiServer(t, http.StatusOK, "api.demo.example.com")
		resolve := "api.demo.example.com:" + port + ":127.0.0.1"
		got := exits(t, command.OK, "check-endpoint", "api.demo.example.com:"+port, "--resolve", resolve, "--ca", "ca.crt", "--timeout", "1m").cleanly()
		testkit.Contains(t, got.out, "name        api.demo.example.com: ok\n", "/readyz       HTTP 200\n\nNo problem found.\n")
		exits(t, command.Finding, "check-endpoint", "127.0.0.1:"+port, "--server-name", "api.demo.example.com", "--ca", "ca.crt", "--expires-within", "9999h", "--timeout", "1m").has("[expires-soon]")
	})
	t.Run("wrong", func(t *testing.T) {
		port := apiServer(t, http.StatusInternalServerError, "api.demo.example.com")
		args := []string{"check-endpoint", "https://api.corp.example:" + port, "--resolve", "*:" + port + ":127.0.0.1", "--ca", "ca.crt", "--timeout", "1m"}
		testkit.Equal(t, wrongEndpoint, steady(exits(t, command.Finding, args...).cleanly().out, port))
		var got endpoint.Report
		testkit.Must(t, json.Unmarshal([]byte(exits(t, command.Finding, append(args, "-o", "json")...).out), &got))
		e := got.Endpoints[0]
		if got.OK || len(got.Findings) != 2 || got.Findings[0].Code != "wrong-name" || e.Ready.Live != http.StatusOK || !cmp.Equal(e.Ready.Failed, []string{"etcd"}) || e.NameOK || !e.TrustOK || !e.TimeOK {
			t.Errorf("%+v", got)
		}
	})
	// A name that does not resolve has a report, too, without null.
	t.Run("nothing", func(t *testing.T) {
		exits(t, command.Finding, "check-endpoint", "127.0.0.1", "-6", "-o", "json").has(`"endpoints": []`).lacks("null")
	})
}

// A certificate cannot write to the terminal.
func TestEndpointTextIsPlain(t *testing.T) {
	hostile := pkix.Name{CommonName: "a\x1b[31m\nNo problem found."}.String()
	var p printer
	endpointText(&p, &endpoint.Report{Host: "a", Endpoints: []endpoint.Endpoint{{Address: netip.MustParseAddrPort("192.0.2.1:1"), Connected: true, TLS: "TLS 1.3",
		Chain: []endpoint.Certificate{{Subject: hostile, Issuer: hostile, Names: []string{hostile}}}}},
		Findings: []endpoint.Finding{{What: hostile, Next: hostile}}}, time.Unix(0, 0))
	if text := p.String(); unprintable.MatchString(text) || strings.Contains(text, "\nNo problem found") {
		t.Errorf("%q", text)
	}
}
