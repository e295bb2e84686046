package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"runtime"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/templates/manifest"
)

// afterStart returns the time that a node needs after the start of a job: until all checks have
// agreed and an election is over.
func (r *run) afterStart() time.Duration {
	return start + r.bounds.Hung + r.bounds.BackendUp + r.bounds.election()
}

// afterNetwork returns the time that a node needs after its addresses were removed and added: the
// agent takes no part until the others know the node's addresses.
func (r *run) afterNetwork() time.Duration {
	if r.routed != nil { // which needs no other node
		return 2*r.bounds.Session + r.bounds.BackendUp
	}
	return r.bounds.Apply + r.bounds.Join + r.afterStart()
}

// announcer returns the pod that makes the VIPs of a node known.
func (r *run) announcer() string {
	if r.routed != nil {
		return manifest.BGP
	}
	return manifest.Keepalived
}

func (a *act) power(ctx context.Context) (undo, error) {
	n := a.node()
	doing := a.begin(n, condition{Effect: effectUnsure})
	a.record.watch.Off(n.Name)
	err := n.Kill()
	m := a.begin(n, condition{Effect: effectOut})
	doing.end(0)
	return func(ctx context.Context) error {
		api := a.begin(n, condition{Effect: effectUnsureAPI})
		err := a.recover(ctx, m, "", a.bounds.Apply+a.afterStart(),
			func() error { a.record.watch.On(n.Name); return n.Heal(ctx) },
			func() error { return a.files.follow(n) },
			func() error { return a.awaitPod(ctx, n, a.announcer()) },
			func() error {
				if n.Role != v1alpha1.RoleMaster {
					return nil
				}
				return a.awaitPod(ctx, n, manifest.HAProxy)
			})
		api.end(a.settle(a.bounds.BackendUp))
		return err
	}, err
}

func (a *act) link(ctx context.Context) (undo, error) {
	n := a.node()
	m, err := a.between(n, condition{Effect: effectOut}, n.Unplug)
	return func(ctx context.Context) error {
		api := a.begin(n, condition{Effect: effectUnsureAPI})
		err := a.recover(ctx, m, "", a.afterNetwork(), n.PlugIn)
		api.end(a.settle(a.bounds.BackendUp))
		return err
	}, err
}

// flap sets the link down and up until undone.
func (a *act) flap(ctx context.Context) (undo, error) {
	n := a.node()
	api := a.begin(n, condition{Effect: effectUnsureAPI})
	m := a.begin(n, condition{Effect: effectUnsure})
	rng := rand.New(rand.NewPCG(uint64(a.fault.At), uint64(a.fault.For)))
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			down := a.begin(n, condition{Effect: effectOut})
			err := n.Unplug()
			pause(stop, time.Duration(100+rng.IntN(300))*time.Millisecond)
			down.end(0)
			if err = errors.Join(err, n.PlugIn()); err != nil {
				done <- err
				return
			}
			if !pause(stop, time.Duration(100+rng.IntN(500))*time.Millisecond) {
				done <- nil
				return
			}
		}
	}()
	return func(ctx context.Context) error {
		close(stop)
		err := a.recover(ctx, m, "", a.afterNetwork(), func() error { return <-done })
		api.end(a.settle(a.bounds.BackendUp))
		return err
	}, nil
}

// pause waits for d; it returns false if stop was closed.
func pause(stop <-chan struct{}, d time.Duration) bool {
	select {
	case <-stop:
		return false
	case <-time.After(d):
		return true
	}
}

// partition separates nodes. The nodes that change sides may reach any node or none meanwhile.
func (a *act) partition(ctx context.Context) (undo, error) {
	var names []string
	moving, apart := map[string]int{}, map[string]int{}
	for _, n := range a.nodes {
		names = append(names, n.Name)
		moving[n.Name], apart[n.Name] = betweenSides, 1
	}
	a.record.topology(moving)
	err := a.cluster.Partition(names...)
	a.record.topology(apart)
	return func(context.Context) error {
		a.record.topology(moving)
		err := a.cluster.Join()
		a.record.topology(nil)
		return err
	}, err
}

// flush removes all nftables rules, those of the firewall job included.
func (a *act) flush(ctx context.Context) (undo, error) {
	m := a.begin(a.node(), condition{Effect: effectUnsure, Group: v1alpha1.GroupAPI})
	err := a.node().Run(nil, "nft", "flush", "ruleset")
	m.end(a.settle(2 * a.bounds.Hung))
	return nil, err
}

// staleVIP boots a node whose link has VIPs that nothing on it manages (hard case 1).
func (a *act) staleVIP(ctx context.Context) (undo, error) {
	n := a.node()
	doing := a.begin(n, condition{Effect: effectUnsure})
	restore, err := n.RemovePod(ctx, manifest.Keepalived)
	if restore == nil {
		doing.end(0)
		return nil, fmt.Errorf("%w: %w", errNoEffect, err)
	}
	m := a.begin(n, condition{Effect: effectStale})
	doing.end(0)
	for _, g := range a.cluster.Spec().Groups {
		for _, vip := range g.VIPs {
			bits := 24
			if vip.Is6() {
				bits = 64
			}
			err = errors.Join(err, n.AddAddress(n.Link, netip.PrefixFrom(vip, bits)))
		}
	}
	return func(ctx context.Context) error {
		return a.recover(ctx, m, "", a.afterStart(), func() error {
			again := a.begin(n, condition{Effect: effectStale})
			err := restore()
			if err == nil {
				err = a.awaitRestart(ctx, n, jobs["keepalived"], nil)
			}
			again.end(0)
			return err
		})
	}, err
}

// renumber replaces the addresses of a node by others of the same network for a while.
func (a *act) renumber(ctx context.Context) (undo, error) {
	n := a.node()
	was := n.OwnAddresses()
	m := a.begin(n, condition{Effect: effectUnsure})
	api := a.begin(n, condition{Effect: effectUnsureAPI})
	err := a.renumberTo(ctx, n, a.spare.nodes[a.fault.Nodes[0]].Addresses)
	return func(ctx context.Context) error {
		err := a.recover(ctx, m, "", a.afterNetwork(), func() error { return a.renumberTo(ctx, n, was) })
		api.end(a.settle(a.bounds.Apply + a.bounds.BackendUp))
		return err
	}, err
}

// renumberTo replaces the addresses of a node.
func (a *act) renumberTo(ctx context.Context, n *lab.Node, fresh []netip.Prefix) error {
	reload := a.reloading()
	defer func() { reload.end(a.settle(a.bounds.Apply)) }()
	return n.Renumber(ctx, fresh)
}

// reloading records that every keepalived may reload its configuration.
func (a *act) reloading() *mark { return a.record.begin(condition{Effect: effectReload, Why: a.why}) }

// load keeps all cores busy.
func (a *act) load(context.Context) (undo, error) {
	ctx, cancel := context.WithCancel(context.Background())
	var loops []*exec.Cmd
	var err error
	for range 2 * runtime.NumCPU() {
		// The shell is the loop: it ends when it is killed, or after a time limit.
		c := exec.CommandContext(ctx, "timeout", "--signal=KILL", fmt.Sprint(1+int(2*a.fault.For/second)), "sh", "-c", "while :; do :; done")
		c.WaitDelay = time.Second
		setGroup(c)
		if e := c.Start(); e != nil {
			err = errors.Join(err, e)
			continue
		}
		loops = append(loops, c)
	}
	return func(context.Context) error {
		cancel()
		for _, c := range loops {
			c.Wait() // always an error: it was killed
		}
		return nil
	}, err
}
