package chaos

import (
	"context"
	"errors"
	"net/netip"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// setGroup makes the children of a command end with it.
func setGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// awayAPI stops API servers with away and restores them with back.
func (a *act) awayAPI(ctx context.Context, away func(kubeapi.Server) error, back func(context.Context, kubeapi.Server) error) (undo, error) {
	return a.each(ctx, func(n *lab.Node) (undo, error) {
		if n.API == nil || !n.API.Running() {
			return nil, errNoEffect
		}
		m := a.begin(n, condition{Effect: effectNoAPI})
		err := away(n.API)
		return func(ctx context.Context) error {
			unsure := a.begin(n, condition{Effect: effectUnsureAPI})
			m.end(0)
			err := back(ctx, n.API)
			unsure.end(a.settle(a.bounds.BackendUp))
			return err
		}, err
	})
}

func launch(ctx context.Context, s kubeapi.Server) error {
	return errors.Join(s.Launch(), s.AwaitReady(ctx))
}

func (a *act) killAPI(ctx context.Context) (undo, error) {
	return a.awayAPI(ctx, kubeapi.Server.Kill, launch)
}

func (a *act) stopAPI(ctx context.Context) (undo, error) {
	return a.awayAPI(ctx, func(s kubeapi.Server) error { return s.Stop(ctx) }, launch)
}

func (a *act) freezeAPI(ctx context.Context) (undo, error) {
	return a.awayAPI(ctx, kubeapi.Server.Freeze, func(ctx context.Context, s kubeapi.Server) error {
		return errors.Join(s.Thaw(), s.AwaitReady(ctx))
	})
}

// halfAPI keeps an API server's health checks alone: agents and clients that need more have to turn
// to another one.
func (a *act) halfAPI(context.Context) (undo, error) {
	n := a.node()
	if n.API == nil || !n.API.Running() {
		return nil, errNoEffect
	}
	m := a.begin(n, condition{Effect: effectUnsureAPI})
	restore, err := n.HalfAPI()
	return func(ctx context.Context) error {
		var err error
		if restore != nil {
			err = restore(ctx)
		}
		m.end(a.settle(a.bounds.BackendUp))
		return err
	}, err
}

// fullEtcd has etcd refuse writes. What changes objects waits until it takes them again.
func (a *act) fullEtcd(ctx context.Context) (undo, error) {
	return func(ctx context.Context) error { return a.cluster.API.RefuseWrites(ctx, false) }, a.cluster.API.RefuseWrites(ctx, true)
}

func (a *act) stopMCS(context.Context) (undo, error) {
	s := a.node().MachineConfig
	if s == nil {
		return nil, errNoEffect
	}
	s.Stop()
	return func(context.Context) error { return s.Start() }, nil
}

// afterRouter returns the time until a node with a new router counts as one that has a router.
func (a *act) afterRouter() time.Duration {
	return 2*nodesPace + a.bounds.Refused + a.bounds.election()
}

func (a *act) stopRouter(context.Context) (undo, error) {
	n := a.node()
	s := n.Router(a.controller())
	if s == nil {
		return nil, errNoEffect
	}
	m := a.begin(n, a.noRouter())
	s.Stop()
	return func(ctx context.Context) error {
		return a.recover(ctx, m, v1alpha1.GroupIngress, a.afterRouter(), s.Start)
	}, nil
}

// noRouter returns the condition of a node without a router.
func (r *run) noRouter() condition {
	return condition{Effect: effectUnfit, Group: v1alpha1.GroupIngress, Notice: r.bounds.Refused}
}

func (a *act) routerNotReady(ctx context.Context) (undo, error) {
	n := a.node()
	if n.Router(a.controller()) == nil {
		return nil, errNoEffect
	}
	set := func(ctx context.Context, ready bool) error {
		return lab.Confirm(ctx, "a router", func() error { return n.RouterReady(ctx, a.controller(), ready) })
	}
	m := a.begin(n, condition{Effect: effectUnsure, Group: v1alpha1.GroupIngress})
	return func(ctx context.Context) error {
		return a.recover(ctx, m, v1alpha1.GroupIngress, a.afterRouter(), func() error { return set(ctx, true) })
	}, set(ctx, false)
}

// moveRouter removes a router and starts one on a node without.
func (a *act) moveRouter(ctx context.Context) (undo, error) {
	n, group := a.node(), a.ingress
	if group == nil || n.Router(group.Controller) == nil {
		return nil, errNoEffect
	}
	// While an API server answers, so that the pod is removed together with the router.
	err := lab.Confirm(ctx, "a router", func() error { return n.RouterReady(ctx, group.Controller, false) })
	if err != nil {
		return nil, err
	}
	gone := a.begin(n, a.noRouter())
	err = n.RemoveRouter(ctx, group.Controller)
	return func(ctx context.Context) error {
		for _, to := range a.cluster.Nodes() {
			if !a.cluster.Spec().Hosts(group, to.Role, nil) || to.Router(group.Controller) != nil {
				continue
			}
			return a.recover(ctx, gone, v1alpha1.GroupIngress, a.afterRouter(), func() error {
				return to.PutRouter(ctx, group.Controller, group.HealthPort)
			})
		}
		return nil
	}, err
}

// controller returns the ingress controller whose routers are broken.
func (r *run) controller() string {
	if r.ingress == nil {
		return ""
	}
	return r.ingress.Controller
}

// rewrite changes cluster.yaml on all nodes; undo restores it.
func (a *act) rewrite(change func(*v1alpha1.ClusterConfigSpec)) (undo, error) {
	old := a.cluster.Rendered()
	apply := func(c *render.Cluster) error {
		m := a.reloading()
		err := a.cluster.Apply(c)
		m.end(a.settle(a.bounds.Apply))
		return err
	}
	fresh, err := changed(old, change)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return apply(old) }, apply(fresh)
}

// changed returns a copy of a cluster with a changed configuration.
func changed(c *render.Cluster, change func(*v1alpha1.ClusterConfigSpec)) (*render.Cluster, error) {
	data, err := c.Config.Marshal()
	if err != nil {
		return nil, err
	}
	out := *c
	if out.Config, err = v1alpha1.LoadClusterConfig("cluster.yaml", data); err != nil {
		return nil, err
	}
	change(&out.Config.Spec)
	return &out, nil
}

func (a *act) timing(context.Context) (undo, error) {
	return a.rewrite(func(s *v1alpha1.ClusterConfigSpec) {
		s.VRRP.Target.Profile = v1alpha1.ProfileCustom
		s.VRRP.Target.AdvertIntervalMS = int(otherInterval(s.VRRP.Target).Milliseconds())
	})
}

// otherInterval returns another advertisement interval. VRRPv2 keeps its interval, which can only
// be changed on all nodes at the same moment.
func otherInterval(v v1alpha1.VRRPSettings) time.Duration {
	now := time.Duration(v.AdvertIntervalMS) * time.Millisecond
	if v.Version == 2 {
		return now
	}
	return now * 3 / 2
}

func (a *act) dns(context.Context) (undo, error) {
	return a.rewrite(func(s *v1alpha1.ClusterConfigSpec) {
		s.DNS.Records = append(s.DNS.Records, v1alpha1.DNSRecord{Name: "chaos.example.com", Addresses: []netip.Addr{a.spareVIP}})
	})
}

// changeVIP moves the API to another VIP of the first one's family, and back.
func (a *act) changeVIP(context.Context) (undo, error) {
	vips := a.cluster.VIPs(v1alpha1.GroupAPI)
	if len(vips) == 0 {
		return nil, errNoEffect
	}
	old := vips[0]
	replace := func(gone, comes netip.Addr) {
		transit := a.settle(a.bounds.Apply + 2*a.bounds.election() + start)
		for vip, then := range map[netip.Addr]wanted{gone: wantGone, comes: wantHeld} {
			a.record.want(vip, 0, wantEither)
			a.record.want(vip, transit, then)
		}
	}
	replace(old, a.spareVIP)
	back, err := a.rewrite(func(s *v1alpha1.ClusterConfigSpec) {
		for i := range s.Groups {
			if slices.Contains(s.Groups[i].VIPs, old) {
				s.Groups[i].VIPs = slices.Clone(s.Groups[i].VIPs)
				s.Groups[i].VIPs[0] = a.spareVIP
			}
		}
	})
	return func(ctx context.Context) error {
		replace(a.spareVIP, old)
		return back(ctx)
	}, err
}

// badFile is a cluster.yaml that no agent takes.
type badFile struct {
	name string
	from func(whole []byte, spare netip.Addr) ([]byte, error)
}

// badConfigs lists the variants of badConfig.
var badConfigs = []badFile{
	{"half", func(whole []byte, _ netip.Addr) ([]byte, error) { return whole[:len(whole)/2], nil }},
	{"other-cluster", func(whole []byte, spare netip.Addr) ([]byte, error) {
		c, err := v1alpha1.LoadClusterConfig("cluster.yaml", whole)
		if err != nil {
			return nil, err
		}
		c.Metadata.Name, c.Spec.Domain = "other", "other.example.com"
		c.Spec.Groups[0].VIPs = []netip.Addr{spare}
		return c.Marshal()
	}},
	{"many-groups", func(whole []byte, _ netip.Addr) ([]byte, error) { return lab.ManyGroups(whole) }},
}

// badConfig replaces cluster.yaml on a node by one that its agents do not take.
func (a *act) badConfig(context.Context) (undo, error) {
	n := a.node()
	whole, err := n.Read(v1alpha1.ClusterConfigPath)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(badConfigs, func(b badFile) bool { return b.name == a.fault.What })
	bad, err := badConfigs[i].from(whole, a.spareVIP)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error { return n.Write(v1alpha1.ClusterConfigPath, whole) }, n.Write(v1alpha1.ClusterConfigPath, bad)
}
