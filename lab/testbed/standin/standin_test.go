package standin

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func newNode(t *testing.T) *netns.Node {
	t.Helper()
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	node, err := network.AddNode("worker-0", netip.MustParsePrefix("192.0.2.20/24"), netip.MustParsePrefix("2001:db8::20/64"))
	testkit.Must(t, err)
	return node
}

// get returns the answer to a URL on the node.
func get(t *testing.T, node *netns.Node, url, host string) (int, string, error) {
	t.Helper()
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{
		DialContext: node.DialContext, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	testkit.Must(t, err)
	req.Host = host
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func TestWeb(t *testing.T) {
	testkit.Live(t)
	node := newNode(t)
	ports := v1alpha1.DefaultPorts
	config, err := NewMachineConfig(node, ports.MachineConfig)
	testkit.Must(t, err)
	t.Cleanup(config.Stop)
	router, err := NewRouter(node, "default", ports.RouterHealth)
	testkit.Must(t, err)
	t.Cleanup(router.Stop)
	if _, err := NewRouter(node, "default", ports.RouterHealth); err == nil {
		t.Error("two routers at one port")
	}

	const host, answer = "console.apps.demo.example.com", "console.apps.demo.example.com from router default at worker-0\n"
	tests := []struct {
		service *Service
		url     string
		status  int
		body    string
	}{
		{config, "https://192.0.2.20:22623/healthz", 200, ""},
		{config, "https://[2001:db8::20]:22623/healthz", 200, ""},
		{config, "https://127.0.0.1:22623/config/master", 404, "404 page not found\n"},
		{router, "http://127.0.0.1:1936/healthz", 200, ""},
		{router, "http://127.0.0.1:1936/healthz/ready", 200, ""},
		{router, "http://127.0.0.1:1936/metrics", 404, "404 page not found\n"},
		{router, "http://192.0.2.20/", 200, answer},
		{router, "https://[2001:db8::20]/any", 200, answer},
	}
	ask := func(when string) {
		t.Helper()
		for _, tt := range tests {
			status, body, err := get(t, node, tt.url, host)
			if !tt.service.Running() {
				if err == nil {
					t.Errorf("%s, %s: answered", tt.url, when)
				}
				continue
			}
			if err != nil || status != tt.status || body != tt.body {
				t.Errorf("%s, %s: %d %q %v", tt.url, when, status, body, err)
			}
		}
	}
	ask("at first")
	router.Stop()
	ask("without the router")
	testkit.Must(t, router.Start())
	if err := router.Start(); err == nil {
		t.Error("it was started twice")
	}
	ask("with it again")
}

// A service that stops closes its connections at once.
func TestStopClosesConnections(t *testing.T) {
	testkit.Live(t)
	node := newNode(t)
	router, err := NewRouter(node, "default", v1alpha1.DefaultPorts.RouterHealth)
	testkit.Must(t, err)
	t.Cleanup(router.Stop)
	conn, err := node.DialContext(t.Context(), "tcp", "192.0.2.20:80")
	testkit.Must(t, err)
	defer conn.Close()
	router.Stop()
	conn.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("something came")
	} else if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the connection stays")
	}
}

func TestNameServer(t *testing.T) {
	testkit.Live(t)
	node := newNode(t)
	addr := netip.MustParseAddr("192.0.2.20")
	server, err := NewNameServer(node, addr, ExampleRecord)
	testkit.Must(t, err)
	t.Cleanup(server.Stop)
	ask := func(network, name string, kind uint16) (*dns.Msg, error) {
		conn, err := node.DialContext(t.Context(), network, "192.0.2.20:53")
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		reply, _, err := (&dns.Client{Timeout: testkit.Patience}).ExchangeWithConnContext(ctx, new(dns.Msg).SetQuestion(name, kind), &dns.Conn{Conn: conn})
		return reply, err
	}
	tests := []struct {
		name    string
		kind    uint16
		rcode   int
		answers int
	}{
		{"www.example.org.", dns.TypeA, dns.RcodeSuccess, 1},
		{"WWW.example.org.", dns.TypeA, dns.RcodeSuccess, 1},
		{"www.example.org.", dns.TypeAAAA, dns.RcodeSuccess, 0},
		{"example.org.", dns.TypeA, dns.RcodeNameError, 0},
	}
	for _, network := range []string{"udp", "tcp"} {
		for _, tt := range tests {
			reply, err := ask(network, tt.name, tt.kind)
			if err != nil || reply.Rcode != tt.rcode || len(reply.Answer) != tt.answers {
				t.Errorf("%s by %s: %v, %v", tt.name, network, err, reply)
			}
		}
		server.Stop()
		if reply, err := ask(network, "www.example.org.", dns.TypeA); err == nil {
			t.Errorf("after Stop, by %s: %v", network, reply)
		}
		testkit.Must(t, server.Start())
	}
	for _, bad := range []string{"", "www 60 IN A nowhere"} {
		if _, err := NewNameServer(node, addr, bad); err == nil {
			t.Errorf("a name server with the record %q", bad)
		}
	}
}
