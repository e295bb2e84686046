package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
)

// floodRate is the number of VRRP packets per second from the hostile host, to each node and the
// multicast group in turn: a group of the smallest profile gets several times its own traffic.
const floodRate = 5000

// vrrpFlood sends advertisements for every VIP to every node and to the multicast group.
func (a *act) vrrpFlood(context.Context) (undo, error) {
	i := slices.IndexFunc(attack.VRRPs, func(v attack.VRRP) bool { return v.Name == a.fault.What })
	v := attack.VRRPs[i].Against(a.cluster.Spec().VRRP.Target)
	if !v.Filtered(a.cluster.Spec().VRRP.Target) {
		return nil, errNoEffect
	}
	nodes := a.cluster.Nodes()
	var packets []attack.Packet
	for _, g := range a.cluster.Spec().Groups {
		for _, vip := range g.VIPs {
			to := []netip.Addr{vrrp.MulticastGroup(vip.Is6())}
			for _, n := range nodes {
				to = append(to, addressOf(n.OwnAddresses(), vip.Is6()))
			}
			for j, t := range to {
				from := addressOf(a.spare.hostile.Addresses, vip.Is6())
				switch v.Source {
				case attack.Peer: // any node but the destination
					from = addressOf(nodes[j%len(nodes)].OwnAddresses(), vip.Is6())
				case attack.Nobody:
					from = addressOf(a.spare.nobody.Addresses, vip.Is6())
				}
				if from.IsValid() && t.IsValid() {
					packets = append(packets, v.Packet(g.VirtualRouterID, vip, from, t))
				}
			}
		}
	}
	return a.flood(floodRate, packets)
}

// addressOf returns the first address of a family, the zero value if there is none.
func addressOf(list []netip.Prefix, ipv6 bool) netip.Addr {
	for _, p := range list {
		if p.Addr().Is6() == ipv6 {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

const (
	// mdnsRate is the number of mDNS packets per second: each costs every node up to half a
	// millisecond.
	mdnsRate = 50
	// mdnsPackets is the number of different packets: with the largest, more records than a cache
	// can hold.
	mdnsPackets = 16
)

// mdnsFlood sends records of hosts that do not exist.
func (a *act) mdnsFlood(context.Context) (undo, error) {
	i := slices.IndexFunc(mdnsKinds, func(m mdnsPacket) bool { return m.name == a.fault.What })
	packets, err := mdnsKinds[i].packets(mdnsPackets)
	if err != nil {
		return nil, err
	}
	return a.flood(mdnsRate, packets)
}

// flood sends packets from the hostile host until undone.
func (a *act) flood(perSecond int, packets []attack.Packet) (undo, error) {
	f, err := attack.Start(a.hostile, perSecond, packets...)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { f.Stop(); return nil }, nil
}

// Variants of oddNode: the unusual content.
const (
	oddLabels      = "labels"
	oddAnnotations = "annotations"
	oddAddresses   = "addresses"
	oddFirst       = "addresses-first"
	noRole         = "no-role"
)

// oddities lists the variants of oddNode.
var oddities = []string{oddLabels, oddAnnotations, oddAddresses, oddFirst, noRole}

// oddNode has the kubelet of a node write unusual content into its Node, or removes the role from
// it, for a while. The others may lose this node as a peer, and no other node; it must not be a
// holder then.
func (a *act) oddNode(ctx context.Context) (undo, error) {
	n := a.node()
	odd := attack.NewNode(rand.New(rand.NewPCG(uint64(a.fault.At), uint64(a.fault.For))), pattern(n.Address()), a.taken(n)...)
	switch a.fault.What {
	case oddLabels:
		odd.Annotations, odd.Addresses = nil, nil
	case oddAnnotations:
		odd.Labels, odd.Addresses = nil, nil
	case oddAddresses:
		odd.Labels, odd.Annotations = nil, nil
		odd.Addresses = append(odd.Addresses, attack.Address{Type: "InternalIP", Address: "none"})
	case oddFirst:
		odd.Labels, odd.Annotations = nil, nil
		odd.Addresses = append(odd.Addresses, attack.Address{Type: "InternalIP", Address: fmt.Sprintf(pattern(n.Address()), 250)})
		for _, p := range n.OwnAddresses() {
			odd.Addresses = append(odd.Addresses, attack.Address{Type: "InternalIP", Address: p.Addr().String()})
		}
	case noRole:
		odd = attack.Node{NoRole: true}
	}
	m := a.begin(n, condition{Effect: effectUnsure})
	api := a.begin(n, condition{Effect: effectUnsureAPI})
	unknown := a.begin(n, condition{Effect: effectDisowned}) // its own API server may hang
	var restore func(context.Context) error
	err := a.reread(func() (err error) {
		restore, err = n.Overwrite(ctx, odd)
		return err
	})
	return func(ctx context.Context) error {
		err := a.recover(ctx, m, "", a.afterNetwork(), func() error {
			return a.reread(func() error { return restore(ctx) })
		})
		unknown.end(0)
		api.end(a.settle(a.bounds.Apply + a.bounds.BackendUp))
		return err
	}, err
}

// pattern returns the address with a verb for the last number.
func pattern(a netip.Addr) string {
	text := a.String()
	return text[:strings.LastIndexAny(text, ".:")+1] + "%d"
}

// taken returns the addresses of other nodes, and the VIPs.
func (a *act) taken(but *lab.Node) (out []string) {
	for _, g := range a.cluster.Spec().Groups {
		for _, vip := range g.VIPs {
			out = append(out, vip.String())
		}
	}
	for _, n := range a.cluster.Nodes() {
		for _, p := range n.OwnAddresses() {
			if n != but {
				out = append(out, p.Addr().String())
			}
		}
	}
	return out
}

// reread changes a Node, after which every keepalived may reload its configuration.
func (a *act) reread(change func() error) error {
	reload := a.reloading()
	err := change()
	reload.end(a.settle(a.bounds.Apply))
	return err
}

// deletedNode powers a node off, deletes its Node, lets its credentials expire, and powers it on
// again: the node must not hold a VIP that another node holds. Undo makes it a node of the cluster
// again.
func (a *act) deletedNode(ctx context.Context) (undo, error) {
	n := a.node()
	away := a.begin(n, condition{Effect: effectNoAPI})
	doing := a.begin(n, condition{Effect: effectUnsure})
	a.record.watch.Off(n.Name)
	err := n.Kill()
	off := a.begin(n, condition{Effect: effectOut})
	err = errors.Join(err, a.reread(func() error { return n.Forget(ctx) }))
	if err == nil {
		err = errors.Join(a.awaitForgotten(ctx, n), a.awaitHolders(ctx, n))
	}
	a.record.watch.On(n.Name)
	off.end(0)
	if err == nil {
		err = errors.Join(n.Heal(ctx), a.files.follow(n))
	}
	return a.readmit(n, away, doing), err
}

// readmit makes a deleted node a node of the cluster again.
func (a *act) readmit(n *lab.Node, away, doing *mark) undo {
	return func(ctx context.Context) error {
		api := a.begin(n, condition{Effect: effectUnsureAPI})
		away.end(0)
		err := a.recover(ctx, doing, "", a.afterNetwork(),
			func() error { return a.reread(func() error { return n.Readmit(ctx) }) },
			func() error { return a.awaitPod(ctx, n, "keepalived") })
		api.end(a.settle(a.bounds.Apply + a.bounds.BackendUp))
		return err
	}
}

// deletedApart cuts a node off, deletes its Node meanwhile and lets its credentials expire: when the
// network heals, the node has VIPs, its list of peers is old, and no peer sends to it.
func (a *act) deletedApart(ctx context.Context) (undo, error) {
	n := a.node()
	away := a.begin(n, condition{Effect: effectNoAPI})
	doing := a.begin(n, condition{Effect: effectUnsure})
	var err error
	if n.API != nil && n.API.Running() {
		err = n.API.Kill()
	}
	join, e := a.partition(ctx)
	err = errors.Join(err, e, a.reread(func() error { return n.Forget(ctx) }))
	if err == nil {
		err = errors.Join(a.awaitForgotten(ctx, n), a.awaitHolders(ctx, n))
	}
	unknown := a.begin(n, condition{Effect: effectDisowned})
	err = errors.Join(err, join(ctx))
	back := a.readmit(n, away, doing)
	return func(ctx context.Context) error {
		unknown.end(0)
		if n.API != nil {
			if err := launch(ctx, n.API); err != nil {
				return err
			}
		}
		return back(ctx)
	}, err
}

// awaitForgotten waits until no other node has the deleted one as a peer: real nodes are powered on
// again after days.
func (a *act) awaitForgotten(ctx context.Context, gone *lab.Node) error {
	return lab.AwaitEvery(ctx, pollEvery, "all others to forget "+gone.Name, func() (bool, error) {
		for _, n := range a.cluster.Nodes() {
			conf, err := n.Read(v1alpha1.KeepalivedConf)
			if n == gone || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || slices.Contains(strings.Fields(string(conf)), gone.Address().String()) {
				return false, err
			}
		}
		return true, nil
	})
}

// awaitHolders waits until another node holds every VIP: a deleted node takes a VIP that no node
// holds, since no node is there to reject it (docs/security.md).
func (a *act) awaitHolders(ctx context.Context, but *lab.Node) error {
	return lab.AwaitEvery(ctx, pollEvery, "every VIP to be held", func() (bool, error) {
		for _, g := range a.cluster.Spec().Groups {
			for _, vip := range g.VIPs {
				list, err := a.cluster.Holders(vip)
				if err != nil || !slices.ContainsFunc(list, func(n *lab.Node) bool { return n != but }) {
					return false, err
				}
			}
		}
		return true, nil
	})
}

// killEvery is the poll interval for a daemon to kill.
const killEvery = 50 * time.Millisecond

// crashLoop kills a daemon each time it starts. A node whose keepalived was killed may still have
// its VIP (hard case 38) and counts as a holder.
func (a *act) crashLoop(context.Context) (undo, error) {
	n, j := a.node(), jobs[a.fault.What]
	c := a.conditionWithout(a.fault.What)
	if a.fault.What == "keepalived" {
		c = &condition{Effect: effectUnsure}
	}
	if len(pids(n, j, j.daemon)) == 0 {
		return nil, errNoEffect
	}
	var m *mark
	if c != nil {
		m = a.begin(n, *c)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for more := true; more; more = pause(stop, killEvery) {
			signal(pids(n, j, j.daemon), syscall.SIGKILL) // none between two starts
		}
	}()
	return func(ctx context.Context) error {
		close(stop)
		<-done
		err := a.awaitRestart(ctx, n, j, nil)
		if m == nil {
			return err
		}
		return errors.Join(err, a.recover(ctx, m, c.Group, a.afterStart()))
	}, nil
}

// oddLink adds links with unexpected names, one with an address.
func (a *act) oddLink(context.Context) (undo, error) {
	n, name := a.node(), a.fault.What
	err := n.Run(nil, "ip", "link", "add", "name", name, "type", "veth", "peer", "name", name+"~")
	if err == nil {
		err = errors.Join(n.Run(nil, "ip", "link", "set", "dev", name, "up"), n.Run(nil, "ip", "address", "add", "198.51.100.1/24", "dev", name))
	}
	return func(context.Context) error { return n.Run(nil, "ip", "link", "delete", "dev", name) }, err
}
