package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/render"
)

// controlPlane returns all nodes of the control plane.
func controlPlane(r *run) []*lab.Node { return r.ControlPlane() }

// rollingRestart restarts the control-plane nodes one after the other, as an upgrade does: pods and
// API server shut down, the node is powered off and on, and the next one follows when the cluster
// is healthy.
func rollingRestart(ctx context.Context, r *run) error {
	for _, n := range r.ControlPlane() {
		r.mark(n.Name + " restarts")
		if err := r.restart(ctx, n); err != nil {
			return fmt.Errorf("restarting %s: %w", n.Name, err)
		}
		if err := r.settled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restart restarts a node as its operating system does.
func (r *run) restart(ctx context.Context, n *lab.Node) error {
	var ends []<-chan error
	start := func(f func() error) {
		done := make(chan error, 1)
		ends = append(ends, done)
		go func() { done <- f() }()
	}
	start(func() error { return n.API.Stop(ctx) })
	for _, p := range n.Kubelet.Pods() {
		start(func() error {
			_, err := n.RemovePod(ctx, p.Name) // heal restores it
			return err
		})
	}
	var errs []error
	for _, done := range ends {
		errs = append(errs, <-done)
	}
	return errors.Join(append(errs, r.kill(n), r.heal(ctx, n))...)
}

// withVIP returns the cluster with another primary API VIP.
func withVIP(c *render.Cluster, vip netip.Addr) *render.Cluster {
	out, config := *c, *c.Config
	config.Spec.Groups = slices.Clone(config.Spec.Groups)
	for i, g := range config.Spec.Groups {
		if g.Role == api {
			vips := slices.Clone(g.VIPs)
			vips[0] = vip
			config.Spec.Groups[i].VIPs = vips
		}
	}
	out.Config = &config
	return &out
}

// vipChange changes the API VIP, which a client waits for. The next change is back to the old one.
func vipChange(_ context.Context, r *run) error {
	old := r.VIPs(api)[0]
	r.later(func(ctx context.Context) error {
		return lab.Await(ctx, "the old VIP to go", func() (bool, error) {
			holders, err := r.Holders(old)
			return len(holders) == 0, err
		})
	})
	fresh := r.spare[0]
	r.spare[0] = netip.PrefixFrom(old, fresh.Bits())
	return r.apply(withVIP(r.Rendered(), fresh.Addr()))
}

// peersChange changes the addresses of the first family on all control-plane nodes at the same
// moment, so that every node has other peers. The next change is back to the old ones.
func peersChange(ctx context.Context, r *run) error {
	nodes := r.ControlPlane()
	errs := make(chan error)
	for i, n := range nodes {
		old := n.OwnAddresses()
		fresh := append([]netip.Prefix{r.spare[1+i]}, old[1:]...)
		r.spare[1+i] = old[0]
		go func() { errs <- n.Renumber(ctx, fresh) }()
	}
	var err error
	for range nodes {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, r.apply(r.Rendered()))
}

// connections is the number of connections that a client keeps open while backends change (hard
// case 18).
const connections = 2000

func hold(ctx context.Context, r *run) (err error) {
	r.held, err = probe.Hold(ctx, probe.HoldConfig{Target: r.target(r.vip), Connections: connections})
	return err
}

// backendsChange adds a control-plane Node and removes it again: every HAProxy is reloaded twice.
func backendsChange(ctx context.Context, r *run) error {
	const name = "joining"
	at := r.spare[0]
	created := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%q:"",%q:""}}}`,
		name, v1alpha1.RoleLabel(v1alpha1.RoleMaster), v1alpha1.RoleLabel("control-plane"))
	status, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": []map[string]string{{"type": "InternalIP", "address": at.Addr().String()}}}})
	if err != nil {
		return err
	}
	r.joining = []lab.Machine{{Name: name, Role: v1alpha1.RoleMaster, Addresses: []netip.Prefix{at}}}
	leave := func(ctx context.Context) error {
		if r.joining == nil {
			return nil
		}
		r.joining = nil
		return errors.Join(r.API.Delete(ctx, "/api/v1/nodes/"+name), r.apply(r.Rendered()), r.awaitBackend(ctx, at.Addr(), false))
	}
	r.later(leave)
	if err := r.API.Create(ctx, "/api/v1/nodes", []byte(created)); err != nil {
		return err
	}
	if err := errors.Join(r.API.Patch(ctx, "/api/v1/nodes/"+name+"/status", status), r.apply(r.Rendered())); err != nil {
		return err
	}
	if err := r.awaitBackend(ctx, at.Addr(), true); err != nil {
		return err
	}
	r.mark("every HAProxy has the new backend; it is taken away again")
	return leave(ctx)
}

// awaitBackend waits until every HAProxy has a backend at an address, or none has.
func (r *run) awaitBackend(ctx context.Context, at netip.Addr, has bool) error {
	for _, n := range r.ControlPlane() {
		err := lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("HAProxy on %s to apply a change", n.Name), func() (bool, error) {
			text, err := n.Read(v1alpha1.HAProxyConf)
			return strings.Contains(string(text), at.String()+":") == has, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// remove starts to remove a pod from a node.
func (r *run) remove(ctx context.Context, n *lab.Node, name string) {
	done := make(chan error, 1)
	r.removals = append(r.removals, done)
	r.later(func(ctx context.Context) error { return n.Heal(ctx) })
	go func() {
		_, err := n.RemovePod(ctx, name)
		done <- err
	}()
}

// awaitRemoved waits until the removed pods are gone.
func (r *run) awaitRemoved() (err error) {
	for _, done := range r.removals {
		err = errors.Join(err, <-done)
	}
	r.removals = nil
	return err
}
