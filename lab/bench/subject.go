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

// settling is the time limit for a cluster to become healthy. Today's needs up to three polls, 10
// seconds apart, three runs of its scripts, and containers in back-off up to five minutes.
const settling = 10 * time.Minute

// backOff resets so early that a container which ran for a whole run restarts at once: crashes of
// different runs are independent of each other.
var backOff = pod.BackOff{Initial: 10 * time.Second, Max: 5 * time.Minute, Reset: 5 * time.Second}

// subject is a running cluster of one profile.
type subject struct {
	Profile
	*lab.Cluster
	routers *lab.Routers // nil unless they know the VIPs by BGP
	asked   int          // number of the client's next port, with routers
	dir     string
	clients int // of each kind at each place, during a scenario
	// spare are unused addresses of the network.
	spare []netip.Prefix
	// joining are nodes that are added to the API and do not exist.
	joining []lab.Machine
}

// build builds the cluster of a profile in a directory of its own.
func build(ctx context.Context, cfg *Config, p Profile, bootstrap bool) (*subject, error) {
	c := p.apply(cfg.cluster(p))
	plan, err := lab.PlanFor(c, lab.PlanOptions{Bootstrap: bootstrap})
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
	if p.Routed {
		if s.routers, err = s.AddRouters(ctx); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// Close ends the cluster and removes its files.
func (s *subject) Close() error { return errors.Join(s.Cluster.Close(), os.RemoveAll(s.dir)) }

// spare returns addresses of the first family that neither the cluster nor the plan uses: one for a
// VIP, and one for each node of the control plane.
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

// apply installs another configuration, or one for changed nodes.
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

// hosts returns the nodes' network namespaces.
func (s *subject) hosts() []*netns.Node {
	return lists.Map(s.Nodes(), func(n *lab.Node) *netns.Node { return n.Node })
}

// vips returns all VIPs of the cluster.
func (s *subject) vips() (out []netip.Addr) {
	for _, g := range s.Spec().Groups {
		out = append(out, g.VIPs...)
	}
	return out
}

// settled waits until every VIP has one holder or its routes, every node the priority of a healthy one, and every
// HAProxy reaches every API server.
func (s *subject) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	if err := s.awaitServing(ctx); err != nil {
		return err
	}
	for _, n := range s.ControlPlane() {
		if err := s.awaitBackends(ctx, n); err != nil {
			return err
		}
	}
	if err := s.awaitLocalAPI(ctx); err != nil || s.Routed {
		return err
	}
	for _, vip := range s.vips() {
		if _, err := s.Holder(ctx, vip); err != nil {
			return err
		}
	}
	return nil
}

// awaitServing waits until every node has the priority of a healthy one, or announces its VIPs.
func (s *subject) awaitServing(ctx context.Context) error {
	for _, g := range s.Spec().Groups {
		if s.Routed {
			if err := s.awaitAnnounced(ctx, &g); err != nil {
				return err
			}
			continue
		}
		for _, n := range s.Nodes() {
			if err := s.awaitPriority(ctx, n, &g); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitPriority waits until a node has the maximum priority for a group, if it belongs to the
// group.
func (s *subject) awaitPriority(ctx context.Context, n *lab.Node, g *v1alpha1.Group) error {
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

// awaitLocalAPI waits until all nodes that are to have local access to the API have it.
func (s *subject) awaitLocalAPI(ctx context.Context) error {
	for _, n := range s.Nodes() {
		if s.Reference || !s.Spec().LocalAPI(n.Role) {
			continue
		}
		err := lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("%s to reach the API without the VIP", n.Name), func() (bool, error) {
			f, err := lab.Published[state.Firewall](n)
			return f != nil && f.Own, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitBackends waits until every API server answers the HAProxy of a node.
func (s *subject) awaitBackends(ctx context.Context, n *lab.Node) error {
	at := netip.AddrPortFrom(n.Address(), uint16(s.Spec().Ports.HAProxy))
	var servers []string
	return lab.AwaitEvery(ctx, costlyPollEvery, fmt.Sprintf("HAProxy on %s to reach every API server", n.Name), func() (bool, error) {
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

// costlyPollEvery is the poll interval for conditions that are expensive to check.
const costlyPollEvery = 200 * time.Millisecond
