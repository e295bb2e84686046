package lab

import (
	"context"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testkit"
)

// arpSpoofing has a host on the link answer for the addresses of all peers of a holder, ten times a
// second, and drop what it gets.
func arpSpoofing(t *testing.T, c *cluster, n *node) func() {
	stranger, err := c.Network().AddNode("spoofer", netip.MustParsePrefix("192.0.2.66/24"), netip.MustParsePrefix("2001:db8::66/64"))
	c.must(err)
	var peers []netip.Addr
	for _, m := range c.masters() {
		for _, a := range m.OwnAddresses() {
			if m != n {
				peers = append(peers, a.Addr())
			}
		}
	}
	stop, err := attack.Claim(stranger, 100*time.Millisecond, peers...)
	c.must(err)
	t.Cleanup(stop)
	return stop
}

// listening finds the ports at which agents accept TCP, in the output of ss.
var listening = regexp.MustCompile(`(?m)^LISTEN +\d+ +\d+ +(\S+):(\d+) .*"vipgen-agent"`)

const (
	// slowOnes is the number of connections to a port, each with a byte per slowEvery.
	slowOnes  = 64
	slowEvery = time.Second
)

// slowStrangers opens connections to every port of every agent of a holder, and sends a request
// over each that does not end: from the node itself to ports on loopback, as a pod in the host's
// network could, else from outside.
func slowStrangers(t *testing.T, c *cluster, n *node) func() {
	out, err := n.Command(t.Context(), "ss", "-Hltnp").Output()
	c.must(err)
	ports := map[string]bool{}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var all sync.WaitGroup
	for _, found := range listening.FindAllStringSubmatch(string(out), -1) {
		port, err := strconv.ParseUint(found[2], 10, 16)
		c.must(err)
		from, to := n.Node.Node, netip.MustParseAddr("127.0.0.1")
		if found[1] != "127.0.0.1" && found[1] != "[::1]" {
			from, to = c.Client, n.Address()
		}
		ports[netip.AddrPortFrom(to, uint16(port)).String()] = true
		for range slowOnes {
			all.Go(func() { slow(ctx, from.DialContext, netip.AddrPortFrom(to, uint16(port))) })
		}
	}
	testkit.Equal(t, 6, len(ports)) // five jobs, and clients of VIPs
	before := c.restarts()
	return func() {
		cancel()
		all.Wait()
		testkit.Equal(t, before, c.restarts())
	}
}

// slow keeps a connection open, and opens it again when the other end closes it.
func slow(ctx context.Context, dial dialer, to netip.AddrPort) {
	for ctx.Err() == nil {
		dialing, cancel := context.WithTimeout(ctx, slowEvery)
		conn, err := dial(dialing, "tcp", to.String())
		cancel()
		if err == nil {
			_, err = conn.Write([]byte("GET /metrics HTTP/1.1\r\nHost: a\r\nX: "))
		}
		for err == nil && ctx.Err() == nil {
			pause(ctx)
			_, err = conn.Write([]byte("x"))
		}
		if conn != nil {
			conn.Close()
		}
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(slowEvery):
	}
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)
