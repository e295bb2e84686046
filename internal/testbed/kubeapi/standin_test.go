package kubeapi

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

const domain = "demo.example.com"

// pair is the API on two nodes of a network, master-0 and master-1.
type pair struct {
	Plane
	t       testing.TB
	nodes   [2]*netns.Node
	addrs   [2]netip.Addr
	servers [2]Server
}

// newPair starts a stand-in on both nodes.
func newPair(t testing.TB) *pair {
	t.Helper()
	p := newNodes(t)
	var err error
	p.Plane, err = NewStandIn(StandInConfig{Domain: domain})
	p.must(err)
	p.launch(0, 1)
	return p
}

// newNodes makes the nodes.
func newNodes(t testing.TB) *pair {
	t.Helper()
	network, err := netns.New()
	testkit.Must(t, err)
	testkit.Cleanup(t, network.Close)
	p := &pair{t: t}
	for i := range p.nodes {
		p.addrs[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + i)})
		p.nodes[i], err = network.AddNode(fmt.Sprintf("master-%d", i), netip.PrefixFrom(p.addrs[i], 24))
		p.must(err)
	}
	return p
}

// launch starts API servers on nodes.
func (p *pair) launch(on ...int) {
	p.t.Helper()
	p.t.Cleanup(func() { p.must(p.Close()) })
	for _, i := range on {
		var err error
		p.servers[i], err = p.Server(p.nodes[i], p.addrs[i], netip.MustParseAddr("192.0.2.5"))
		p.must(err)
		p.must(p.servers[i].Launch())
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), testkit.Patience)
	defer cancel()
	for _, i := range on {
		p.must(p.servers[i].AwaitReady(ctx))
	}
}

func (p *pair) must(err error) {
	p.t.Helper()
	testkit.Must(p.t, err)
}

// client is one of the API on a node, as the given user; anonymous without a name.
func (p *pair) client(node int, name string, groups ...string) *http.Client {
	p.t.Helper()
	config := &tls.Config{RootCAs: p.CA().Pool(), ServerName: internalName(domain)}
	if name != "" {
		pair, err := p.CA().Client(name, groups...)
		p.must(err)
		cert, err := pair.TLS()
		p.must(err)
		config.Certificates = []tls.Certificate{cert}
	}
	transport := &http.Transport{
		TLSClientConfig: config, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return p.nodes[node].DialContext(ctx, network, netip.AddrPortFrom(p.addrs[node], port).String())
		},
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: testkit.Patience}
}

// get returns the answer to a request.
func get(client *http.Client, path string) (int, string, error) {
	resp, err := client.Get("https://" + internalName(domain) + ":6443" + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
