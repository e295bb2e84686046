package lab

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// oneMaster is the demo with one control-plane node, and two workers with routers.
var oneMaster = strings.Replace(demo, "replicas: 3", "replicas: 1", 1)

// Connections of clients to a router last as long as their node and router: there is no proxy
// in between. The new holder of the VIP notifies idle clients (agent/tickle), so that no client
// waits for a keep-alive.
func TestIngressConnections(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newClusterOf(t, Config{Cluster: loadWith(t, oneMaster, vipgenYAML), Plan: planOf(1, 2), RealAPI: true})
	ready := func(n *node, ready bool) {
		n.must(func(ctx context.Context) error { return n.RouterReady(ctx, "default", ready) })
	}
	for _, f := range []struct {
		name     string
		do, undo func(*node)
	}{
		{"the holder loses its power", (*node).powerOff, (*node).powerOn},
		{"the router on the holder is killed", func(n *node) { n.Router("default").Stop() }, func(n *node) { n.must(func(context.Context) error { return n.Router("default").Start() }) }},
		{"the router's pod is not ready any more, and the router goes on", func(n *node) { ready(n, false) }, func(n *node) { ready(n, true) }},
	} {
		holder := c.holder(t, ingress)
		machine := testkit.StartStopwatch()
		t.Cleanup(func() { machine.End() })
		asks := c.toRouter(t)
		ended := c.toRouter(t).ended()
		successor := c.nodes[slices.IndexFunc(c.nodes, func(n *node) bool { return n.API == nil && n != holder })]
		testkit.Await(t, successor.Name+" to be notified of connections to the holder", func() bool {
			s, err := Published[state.Keepalived](successor.Node)
			return err == nil && s != nil && slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return i.VIP == ingress && i.Clients == 2 })
		})
		began := time.Now()
		f.do(holder)
		again := time.Duration(0)
		testkit.Await(t, "a client that asks to be answered by the other worker", func() bool {
			node, err := asks.ask()
			if err == nil && node != holder.Name {
				again = time.Since(began)
				return true
			}
			if err != nil {
				asks.Close()
				asks = c.toRouter(t)
			}
			time.Sleep(20 * time.Millisecond)
			return false
		})
		learned := time.Duration(0)
		select {
		case at := <-ended:
			learned = at.Sub(began)
		case <-time.After(testkit.Patience):
			t.Fatalf("%s: a client that only listens waits for ever", f.name)
		}
		late := machine.End()
		testkit.Promise(t, f.name+": until a client that asks is answered", again, 2*time.Second, testkit.Patience, late)
		testkit.Promise(t, f.name+": until a client that only listens learns of it", learned, 2*time.Second, testkit.Patience, late)
		asks.Close()
		f.undo(holder)
		c.check(t)
	}
}

// routed is a connection to a router by the ingress VIP, which stays open.
type routed struct{ connection }

// ask returns the node whose router answers.
func (r routed) ask() (node string, err error) {
	defer r.SetDeadline(time.Time{})
	body, err := r.request("/", "console.apps."+domain)
	words := strings.Fields(body) // HOST from router CONTROLLER at NODE
	if err != nil || len(words) != 6 {
		return "", fmt.Errorf("%q: %w", body, err)
	}
	return words[5], nil
}

// toRouter connects as soon as a node holds the VIP, and sends one request. The kernel sends
// keep-alives only after 15 s without data.
func (c *cluster) toRouter(t *testing.T) (r routed) {
	t.Helper()
	testkit.Await(t, "an answer of a router", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		conn, err := c.Client.DialContext(ctx, "tcp", netip.AddrPortFrom(ingress, 80).String())
		if err != nil {
			return false
		}
		r = routed{connection{conn, bufio.NewReader(conn)}}
		if err = conn.(*net.TCPConn).SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 9}); err == nil {
			_, err = r.ask()
		}
		if err != nil {
			r.Close()
		}
		return err == nil
	})
	t.Cleanup(func() { r.Close() })
	return r
}

// ended returns when an idle client learns that its connection is gone.
func (r routed) ended() chan time.Time {
	out := make(chan time.Time, 1)
	go func() {
		r.reader.Peek(1)
		out <- time.Now()
	}()
	return out
}
