package chaos

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/lab"
)

const (
	// crowded is the number of connections of a node to each port.
	crowded = 64
	// crowdEvery is the pause before a connection is opened again.
	crowdEvery = time.Second
)

// Variants of crowd: the ports.
const (
	crowdClients  = "clients"
	crowdMonitors = "monitors"
)

// crowd has a node, as a pod of it could, keep connections to the port at which the others learn the
// clients of VIPs, or to the monitoring ports of its own agents, and open those again that they end.
func (a *act) crowd(context.Context) (undo, error) {
	n := a.node()
	var to []netip.AddrPort
	switch a.fault.What {
	case crowdClients:
		for _, other := range a.cluster.Nodes() {
			if other != n {
				to = append(to, netip.AddrPortFrom(other.Address(), uint16(v1alpha1.ClientsPort)))
			}
		}
	case crowdMonitors:
		for _, m := range a.cluster.Rendered().Monitored(n.Role) {
			to = append(to, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(m.Port)))
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, port := range to {
		for range crowded {
			all.Go(func() {
				for ctx.Err() == nil {
					keep(ctx, n, port.String())
					sleep(ctx, crowdEvery)
				}
			})
		}
	}
	return func(context.Context) error { cancel(); all.Wait(); return nil }, nil
}

// keep connects, sends the start of a message and of a request, and returns when the other end closes the
// connection.
func keep(ctx context.Context, n *lab.Node, to string) {
	dialing, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := n.DialContext(dialing, "tcp", to)
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err = conn.Write([]byte("VTK")); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // until the end of it
	}
}

// spoof has a host claim the addresses of all nodes, ten times a second, and drop what it gets.
func (a *act) spoof(context.Context) (undo, error) {
	var nodes []netip.Addr
	for _, n := range a.cluster.Nodes() {
		for _, own := range n.OwnAddresses() {
			nodes = append(nodes, own.Addr())
		}
	}
	stop, err := attack.Claim(a.hostile, 100*time.Millisecond, nodes...)
	return func(context.Context) error { stop(); return nil }, err
}
