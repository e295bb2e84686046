package endpoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

const apiName = "api.demo.example.com"

// patience bounds what takes milliseconds on an idle machine; briefly is for checks that are to
// time out, and long enough for the steps before that.
const (
	patience = time.Minute
	briefly  = 300 * time.Millisecond
)

// check checks a target until the findings are as wanted: a busy machine that takes longer than
// briefly for the first steps is given more time, twice as much at each attempt.
func check(ctx context.Context, t Target, want string) *Report {
	for ; ; t.Timeout *= 2 {
		if r := Check(ctx, t); codes(r) == want || t.Timeout > patience/4 {
			return r
		}
	}
}

// unused returns a port of loopback that no program listens on or is given.
func unused(t *testing.T) (port uint16) {
	t.Helper()
	_, port = bound(t)
	return port
}

// bound returns a socket that is bound to a port of loopback and does not listen.
func bound(t *testing.T) (socket int, port uint16) {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	testkit.Must(t, err)
	t.Cleanup(func() { syscall.Close(socket) })
	testkit.Must(t, syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(socket)
	testkit.Must(t, err)
	return socket, uint16(name.(*syscall.SockaddrInet4).Port)
}

// listen listens on a free port of loopback.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func portOf(l net.Listener) uint16 { return uint16(l.Addr().(*net.TCPAddr).Port) }

// api answers like an API server: each path with its status and body, others with 404.
func api(answers map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			answer = "404"
		}
		status, body, _ := strings.Cut(answer, " ")
		var code int
		fmt.Sscan(status, &code)
		w.WriteHeader(code)
		io.WriteString(w, body)
	})
}

var ready = api(map[string]string{"/readyz": "200 ok", "/livez": "200 ok"})

// serve runs a TLS server and returns its port.
func serve(t *testing.T, cert *tls.Certificate, handler http.Handler) uint16 {
	t.Helper()
	l := listen(t)
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{*cert}}, ErrorLog: log.New(io.Discard, "", 0)}
	go server.ServeTLS(l, "", "")
	t.Cleanup(func() { server.Close() })
	return portOf(l)
}

// each handles the connections of a server without TLS. They stay open unless the handler
// closes them.
func each(t *testing.T, handle func(net.Conn)) uint16 {
	t.Helper()
	l := listen(t)
	go func() {
		var open []net.Conn // the garbage collector would close unreferenced ones
		for {
			conn, err := l.Accept()
			if err != nil {
				for _, c := range open {
					c.Close()
				}
				return
			}
			open = append(open, conn)
			handle(conn)
		}
	}()
	return portOf(l)
}

// target is the API's name at a port of loopback.
func target(port uint16) Target {
	return Target{Host: apiName, Port: port, Path: "/readyz", Timeout: patience,
		Pinned: []Pin{{Host: apiName, Port: port, Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}}}
}

// codes returns the codes of a report's findings.
func codes(r *Report) string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, string(f.Code))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A server's certificates, those that the client trusts, and the findings.
func TestCertificates(t *testing.T) {
	root := issue(t, "root", nil, authority)
	middle := issue(t, "middle", root, authority)
	other := issue(t, "other", nil, authority)
	good := issue(t, "server", root, forNames(apiName))
	below := issue(t, "server", middle, forNames(apiName))
	expiredMiddle := issue(t, "expired middle", root, authority, lasting(-3*time.Hour, -2*time.Hour))
	alone := issue(t, "alone", nil, forNames(apiName))
	usual := func(*Target) {}
	for _, tt := range []struct {
		name  string
		shows *tls.Certificate
		ca    []*pair
		how   func(*Target)
		want  string
		says  []string
	}{
		{"right", good.serving(), []*pair{root}, usual, "", nil},
		{"right, with an intermediate", below.serving(middle), []*pair{root}, usual, "", nil},
		{"an intermediate as CA", below.serving(), []*pair{middle}, usual, "", nil},
		{"one that signs itself as CA", alone.serving(), []*pair{alone}, usual, "", nil},
		{"for an address", issue(t, "server", root, forNames("127.0.0.1")).serving(), []*pair{root}, func(t *Target) { t.Host = "127.0.0.1" }, "", nil},
		{"for a name, at an address", good.serving(), []*pair{root}, func(t *Target) { t.Host, t.ServerName = "127.0.0.1", apiName }, "", nil},

		{"expired", issue(t, "server", root, forNames(apiName), lasting(-3*time.Hour, -time.Hour)).serving(), []*pair{root}, usual,
			"expired", []string{"is valid until ", "kube-apiserver's operator"}},
		{"not yet valid", issue(t, "server", root, forNames(apiName), lasting(time.Minute, time.Hour)).serving(), []*pair{root}, usual,
			"not-yet-valid", []string{"compare the clocks"}},
		{"expired intermediate", issue(t, "server", expiredMiddle, forNames(apiName)).serving(expiredMiddle), []*pair{root}, usual,
			"expired", []string{`"CN=expired middle" in the chain`}},
		{"wrong name", issue(t, "server", root, forNames("api.other.example.com")).serving(), []*pair{root}, usual,
			"wrong-name", []string{"is not for api.demo.example.com but for api.other.example.com", "have clients use api.other.example.com", "give the API server a certificate for api.demo.example.com: a Secret"}},
		{"what API servers show to strangers", issue(t, "server", root, forNames("kubernetes", "kubernetes.default.svc", "172.30.0.1")).serving(), []*pair{root}, usual,
			"wrong-name", []string{"the API server presents it for unknown names"}},
		{"a name that it does not have as alternative", issue(t, apiName, root, forNames()).serving(), []*pair{root}, usual,
			"wrong-name", []string{`the common name "api.demo.example.com" does not count`}},
		{"a name, at an address", good.serving(), []*pair{root}, func(t *Target) { t.Host = "127.0.0.1" },
			"wrong-name", []string{"tls-server-name in the kubeconfig", "--server-name api.demo.example.com"}},
		{"unknown CA", good.serving(root), []*pair{other}, usual,
			"unknown-ca", []string{`comes from "CN=root", which this client does not know`, "--ca"}},
		{"unknown CA that is not sent", good.serving(), []*pair{other}, usual,
			"unknown-issuer", []string{`"CN=root", which the server does not send`, "is a CA that this client lacks"}},
		{"signs itself", alone.serving(), []*pair{root}, usual, "unknown-ca", []string{`comes from "CN=alone"`}},
		{"the CAs of this machine", good.serving(root), nil, usual, "unknown-ca", []string{"this was checked with the CAs of this machine"}},
		{"missing intermediate", below.serving(), []*pair{root}, usual,
			"unknown-issuer", []string{`"CN=middle", which the server does not send`, "it is an intermediate, which belongs after the server's own certificate"}},
		{"missing intermediate, known", below.serving(), []*pair{root, middle}, usual,
			"missing-intermediate", []string{`put the certificate of "CN=middle" after the server's own`}},
		{"unrelated intermediate", below.serving(expiredMiddle), []*pair{root, middle}, usual, "expired missing-intermediate", nil},
		{"for clients only", issue(t, "server", root, forNames(apiName), forUse(x509.ExtKeyUsageClientAuth)).serving(), []*pair{root}, usual,
			"bad-chain", []string{"for use by a server"}},
		{"ends soon", good.serving(), []*pair{root}, func(t *Target) { t.ExpiresWithin = 60 * 24 * time.Hour }, "expires-soon", nil},
		{"all of it wrong", issue(t, "server", middle, forNames("a.example.com"), lasting(-2*time.Hour, -time.Hour)).serving(), []*pair{root}, usual,
			"expired unknown-issuer wrong-name", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			port := serve(t, tt.shows, ready)
			target := target(port)
			if tt.ca != nil {
				target.CAs = trusting(t, tt.ca...)
			}
			tt.how(&target)
			r := Check(t.Context(), target)
			if codes(r) != tt.want || r.OK != (tt.want == "") {
				t.Fatalf("findings %q, want %q: %+v", codes(r), tt.want, r.Findings)
			}
			testkit.Contains(t, fmt.Sprint(r.Findings), tt.says...)
			e := r.Endpoints[0]
			if e.Ready == nil || e.Ready.Status != http.StatusOK || !e.Connected || !strings.HasPrefix(e.TLS, "TLS 1.") {
				t.Errorf("a wrong certificate hides the rest: %+v", e)
			}
			has := func(part string) bool { return strings.Contains(tt.want, part) }
			if e.NameOK == has("name") || e.TimeOK == (has("expired") || has("yet")) || e.TrustOK == (has("unknown") || has("missing") || has("chain")) && tt.name != "expired intermediate" {
				t.Errorf("name %v, time %v, trust %v with %q", e.NameOK, e.TimeOK, e.TrustOK, tt.want)
			}
		})
	}
}

// Responses of servers other than an answer.
func TestServers(t *testing.T) {
	root := issue(t, "root", nil, authority)
	good := issue(t, "server", root, forNames(apiName)).serving()
	forever := make(chan struct{})
	defer close(forever)
	hanging := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-forever:
		case <-r.Context().Done():
		}
	})
	for _, tt := range []struct {
		name    string
		port    uint16
		timeout time.Duration
		want    string
		says    string
	}{
		{"refuses", unused(t), patience, "refused", "if Endpoints is empty"},
		{"does not answer", silent(t), briefly, "no-answer", "firewall"},
		{"hangs", each(t, func(net.Conn) {}), briefly, "hangs", "sends nothing for "},
		{"ends the connection", each(t, func(c net.Conn) { c.Close() }), patience, "closed", "has no API server that works"},
		{"speaks HTTP", each(t, func(c net.Conn) { io.WriteString(c, "HTTP/1.0 400 Bad Request\r\n\r\n"); c.Close() }), patience, "no-tls", "speaks HTTP without TLS"},
		{"speaks SSH", each(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") }), patience, "no-tls", "does not speak TLS"},
		{"has no certificate for the name", refusing(t), patience, "tls-failed", "has no certificate for api.demo.example.com"},
		{"hangs later", serve(t, good, hanging), briefly, "hangs", "does not answer /readyz"},
		{"lacks etcd", serve(t, good, api(map[string]string{"/readyz": "500 [+]ping ok\n[-]etcd failed: reason withheld\n[-]etcd-readiness failed: reason withheld\nreadyz check failed\n", "/livez": "200 ok"})), patience,
			"not-ready", "HTTP 500): etcd, etcd-readiness Next:it is live"},
		{"shuts down", serve(t, good, api(map[string]string{"/readyz": "500 [+]ping ok\n[-]shutdown failed: reason withheld\n", "/livez": "200 ok"})), patience, "not-ready", "it shuts down"},
		{"is dead", serve(t, good, api(map[string]string{"/readyz": "500 ", "/livez": "500 "})), patience, "not-ready", "Next:look at the log of kube-apiserver"},
		{"has nobody behind it", serve(t, good, api(map[string]string{"/readyz": "503 "})), patience, "not-ready", "HTTP 503"},
		{"tells strangers nothing", serve(t, good, api(map[string]string{"/readyz": "403 "})), patience, "unsaid", "oc get --raw /readyz"},
		{"is a router", serve(t, good, api(nil)), patience, "not-an-api", "HTTP 404"},
		{"sends elsewhere", serve(t, good, http.RedirectHandler("https://192.0.2.1/", http.StatusFound)), patience, "not-an-api", "HTTP 302"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			target := target(tt.port)
			target.CAs, target.Timeout = trusting(t, root), tt.timeout
			r := check(t.Context(), target, tt.want)
			if codes(r) != tt.want || r.OK != (tt.want == "unsaid") {
				t.Fatalf("OK %v, findings %q, want %q: %+v", r.OK, codes(r), tt.want, r.Findings)
			}
			f := r.Findings[0]
			testkit.Contains(t, f.What+" Next:"+f.Next, tt.says)
			testkit.Equal(t, fmt.Sprintf("127.0.0.1:%d", tt.port), f.Address)
		})
	}
}

// silent returns a port at which the kernel drops packets: its queue is full.
func silent(t *testing.T) uint16 {
	t.Helper()
	socket, port := bound(t)
	testkit.Must(t, syscall.Listen(socket, 0))
	within := patience // the first connection fills the queue
	for range 10 {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), within)
		if err != nil && within == briefly {
			return port
		}
		testkit.Must(t, err)
		t.Cleanup(func() { conn.Close() })
		within = briefly
	}
	t.Fatal("the queue does not fill")
	return 0
}

// refusing starts a TLS server that knows no name.
func refusing(t *testing.T) uint16 {
	return each(t, func(c net.Conn) {
		tls.Server(c, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}).Handshake()
		c.Close()
	})
}

// Each address is checked separately, and a single failing one fails the check.
func TestSeveralAddresses(t *testing.T) {
	root := issue(t, "root", nil, authority)
	port := serve(t, issue(t, "server", root, forNames(apiName)).serving(), ready)
	target := target(port)
	target.CAs = trusting(t, root)
	target.Pinned[0].Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::1")}
	target.IPv4 = true
	r := Check(context.Background(), target)
	if len(r.Endpoints) != 2 || r.Endpoints[0].Ready == nil || r.Endpoints[1].Connected || r.OK || codes(r) != "refused" || r.Findings[0].Address != fmt.Sprintf("127.0.0.2:%d", port) {
		t.Errorf("%+v", r)
	}
	target.IPv4, target.IPv6 = false, true
	target.Pinned[0].Addresses = target.Pinned[0].Addresses[:3]
	if r := Check(context.Background(), target); codes(r) != "no-such-name" || !strings.Contains(r.Findings[0].What, "of the requested family") {
		t.Errorf("%+v", r.Findings)
	}
}

// pair is a certificate with its key and issuer; a nil issuer means self-signed.
type pair struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	issuer *pair
}

// option changes a certificate before it is signed.
type option func(*x509.Certificate)

func lasting(from, to time.Duration) option {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = time.Now().Add(from), time.Now().Add(to) }
}

func forUse(usage x509.ExtKeyUsage) option {
	return func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{usage} }
}

func forNames(names ...string) option {
	return func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				c.IPAddresses = append(c.IPAddresses, ip)
			} else {
				c.DNSNames = append(c.DNSNames, name)
			}
		}
	}
}

func authority(c *x509.Certificate) {
	c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
}

// issue returns a certificate that is valid for a month around now; a nil issuer makes it
// self-signed.
func issue(t *testing.T, name string, issuer *pair, options ...option) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	testkit.Must(t, err)
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}}
	for _, o := range append([]option{lasting(-time.Hour, 30*24*time.Hour)}, options...) {
		o(template)
	}
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	testkit.Must(t, err)
	cert, err := x509.ParseCertificate(der)
	testkit.Must(t, err)
	return &pair{cert, key, issuer}
}

// serving returns a server's chain: its certificate, then others.
func (p *pair) serving(others ...*pair) *tls.Certificate {
	c := &tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key}
	for _, o := range others {
		c.Certificate = append(c.Certificate, o.cert.Raw)
	}
	return c
}

// trusting returns a client's --ca with these certificates.
func trusting(t *testing.T, list ...*pair) Authorities {
	t.Helper()
	var file []byte
	for _, p := range list {
		file = slices.Concat(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw}))
	}
	a, err := ReadAuthorities(file)
	testkit.Must(t, err)
	return a
}
