package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/render"
)

// settling bounds how long a cluster may take to be healthy. Today's needs up to
// three looks, 10 seconds apart, and three runs of its scripts.
const settling = 5 * time.Minute

// backOff lets a container that ran for longer than a run lasts start again at
// once: to kubelet, what is killed in one run is not what was killed in the last.
var backOff = pod.BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute, Reset: 5 * time.Second}

// subject is a cluster of one profile that runs.
type subject struct {
	Profile
	*lab.Cluster
	dir     string
	clients int // of each kind at each place, while a scenario happens
	// spare are addresses of the network that nothing has.
	spare []netip.Prefix
	// joining are nodes that are announced to the cluster and do not exist.
	joining []lab.Machine
}

// build builds the cluster of a profile in a directory of its own.
func build(ctx context.Context, cfg *Config, p Profile, bootstrap bool) (*subject, error) {
	c := p.of(cfg.Cluster)
	plan, err := lab.NewPlan(c, lab.PlanOptions{Bootstrap: bootstrap})
	if err != nil {
		return nil, err
	}
	s := &subject{Profile: p, clients: cfg.Clients}
	if s.spare, err = spare(c, plan); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp(cfg.Dir, p.Name+"-"); err != nil {
		return nil, err
	}
	s.Cluster, err = lab.New(ctx, lab.Config{
		Cluster: c, Plan: plan, Dir: s.dir, Programs: cfg.Programs,
		RealAPI: cfg.RealAPI, Install: p.install(c, plan), BackOff: backOff, Log: cfg.logger(),
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", p.Name, err), os.RemoveAll(s.dir))
	}
	return s, nil
}

// Close ends the cluster and removes its files.
func (s *subject) Close() error { return errors.Join(s.Cluster.Close(), os.RemoveAll(s.dir)) }

// spare gives addresses of the first family that neither the cluster nor the plan
// has: one for a VIP, and one for each node of the control plane.
func spare(c *render.Cluster, plan *lab.Plan) (out []netip.Prefix, err error) {
	names := []string{"vip"}
	for _, m := range plan.Nodes {
		if m.Role == v1alpha1.RoleMaster {
			names = append(names, m.Name)
		}
	}
	machines, err := lab.Spare(c, plan, names...)
	for _, m := range machines {
		out = append(out, m.Addresses[0])
	}
	return out, err
}

// apply gives the cluster another configuration, or what has changed about its
// nodes.
func (s *subject) apply(c *render.Cluster) error {
	if !s.Reference {
		return s.Apply(c)
	}
	nodes := slices.Clone(s.joining)
	for _, n := range s.Nodes() {
		nodes = append(nodes, lab.Machine{Name: n.Name, Role: n.Role, Addresses: n.OwnAddresses()})
	}
	errs := []error{s.Apply(c)}
	for _, n := range s.Nodes() {
		errs = append(errs, installReference(n, c, nodes))
	}
	return errors.Join(errs...)
}

// hosts are the nodes as they are in the network.
func (s *subject) hosts() []*netns.Node {
	return lists.Map(s.Nodes(), func(n *lab.Node) *netns.Node { return n.Node })
}

// vips are all of the cluster.
func (s *subject) vips() (out []netip.Addr) {
	for _, g := range s.Spec().Groups {
		out = append(out, g.VIPs...)
	}
	return out
}

// settled returns when every VIP has one holder, every node the priority that it
// has when it is healthy, and every HAProxy passes on to every API server.
func (s *subject) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for _, n := range s.Nodes() {
		for _, g := range s.Spec().Groups {
			if err := s.atFull(ctx, n, &g); err != nil {
				return err
			}
		}
	}
	for _, n := range s.ControlPlane() {
		if err := s.passesOn(ctx, n); err != nil {
			return err
		}
	}
	if err := s.ownWays(ctx); err != nil {
		return err
	}
	for _, vip := range s.vips() {
		if _, err := s.Holder(ctx, vip); err != nil {
			return err
		}
	}
	return nil
}

// atFull returns when a node that is to hold a group's VIPs has all points that
// there are for it.
func (s *subject) atFull(ctx context.Context, n *lab.Node, g *v1alpha1.Group) error {
	if g.Role == v1alpha1.GroupIngress && n.Router(g.Controller) == nil ||
		g.Role != v1alpha1.GroupIngress && n.Role != v1alpha1.RoleMaster {
		return nil
	}
	full := vrrp.FullPriority(g, n.Role)
	now := 0
	err := lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("%s to have its full priority for %s", n.Name, g.Name), func() (done bool, err error) {
		now, err = s.priority(n, g)
		return now == full, err
	})
	if err != nil {
		err = fmt.Errorf("%w: it has %d of %d", err, now, full)
	}
	return err
}

// ownWays returns when all nodes that are to have a way of their own to the API have it.
func (s *subject) ownWays(ctx context.Context) error {
	for _, n := range s.Nodes() {
		if s.Reference || !s.Spec().LocalAPI(n.Role) {
			continue
		}
		err := lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("%s to have its own way to the API", n.Name), func() (bool, error) {
			f, err := lab.Published[state.Firewall](n)
			return f != nil && f.Own, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// passesOn returns when the HAProxy of a node has every API server answer.
func (s *subject) passesOn(ctx context.Context, n *lab.Node) error {
	at := netip.AddrPortFrom(n.Address(), uint16(s.Spec().Ports.HAProxy))
	var servers []string
	return lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("HAProxy on %s to pass on to every API server", n.Name), func() (bool, error) {
		p, err := probe.Start(probe.Config{Target: probe.Target{URL: "https://" + at.String() + "/readyz", Dial: s.Client.DialContext}, Every: costlyPollEvery / 10})
		if err != nil {
			return false, err
		}
		waiting, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		failed := p.Await(waiting, 2*len(s.ControlPlane()))
		servers = servers[:0]
		for _, r := range p.End().Requests {
			if r.Err == "" && !slices.Contains(servers, r.From) {
				servers = append(servers, r.From)
			}
		}
		all := !slices.ContainsFunc(s.ControlPlane(), func(n *lab.Node) bool { return !slices.Contains(servers, n.Name) })
		return failed == nil && all, nil
	})
}

// costlyPollEvery is how often a condition is looked at where looking costs something.
const costlyPollEvery = 200 * time.Millisecond
