package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/lab/testbed/standin"
	"github.com/vipgen/vipgen/render"
)

// Config says what lab to build.
type Config struct {
	// Cluster is what its nodes get.
	Cluster *render.Cluster
	Plan    *Plan
	// Dir is an empty directory for the files of the lab.
	Dir      string
	Programs Programs
	// Images are those that manifests and units may name besides the cluster's own.
	Images map[string]container.Image
	// RealAPI asks for real API servers and etcd; else they are stand-ins.
	RealAPI bool
	// Install puts a node's files on its host; nil puts there what vipgen renders.
	Install func(*Node) error
	// BackOff of containers that end again and again; kubelet's if it is zero.
	BackOff pod.BackOff
	// Record is told the name of every namespace before it is made; what runs on a
	// host has control groups below the one of that name. It may be nil.
	Record func(namespace string) error
	// Log gets what happens in the lab; it may be nil.
	Log *slog.Logger
	// Progress is told what is done now, in a few words; it may be nil.
	Progress func(string)
}

// Cluster is a lab that runs.
type Cluster struct {
	// Client asks for the VIPs from outside, Site has the name server that the
	// nodes' network brings.
	Client, Site *netns.Node
	API          kubeapi.Plane

	cfg     Config
	network *netns.Network
	images  map[string]container.Image
	names   *standin.Service // the site's name server

	mu      sync.Mutex
	cluster *render.Cluster // what its nodes have now
	nodes   []*Node
	closers []func() error
}

// New builds a lab: its network and machines, API servers with what an installer
// would have put there, and then every node's boot, from its network to its pods.
// What it built is gone again if it fails or ctx ends. The caller must Close it.
func New(ctx context.Context, cfg Config) (c *Cluster, err error) {
	if err := errors.Join(cfg.Programs.Check(), checkWatches(len(cfg.Plan.Nodes))); err != nil {
		return nil, err
	}
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	if cfg.Record == nil {
		cfg.Record = func(string) error { return nil }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c = &Cluster{cfg: cfg, cluster: cfg.Cluster, images: cfg.Programs.images(cfg.Cluster.Images)}
	maps.Copy(c.images, cfg.Images)
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"network and machines", c.build},
		{"API servers", c.startAPI},
		{"nodes", c.boot},
		{"routers", c.placeRouters},
	} {
		cfg.Progress(step.what)
		if err := errors.Join(ctx.Err(), step.do(ctx)); err != nil {
			return c, fmt.Errorf("building the lab, %s: %w", step.what, err)
		}
	}
	return c, nil
}

// Close ends everything that runs in the lab and removes its namespaces and
// control groups. The directory is the caller's.
func (c *Cluster) Close() error {
	c.mu.Lock()
	closers := c.closers
	c.closers = nil
	c.mu.Unlock()
	var errs []error
	for i := len(closers) - 1; i >= 0; i-- {
		errs = append(errs, closers[i]())
	}
	return errors.Join(errs...)
}

// onClose has f called by Close, before what was there earlier.
func (c *Cluster) onClose(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, f)
}

// build makes network, machines and what the site has.
func (c *Cluster) build(context.Context) (err error) {
	if c.network, err = netns.NewRecorded(c.cfg.Record); err != nil {
		return err
	}
	c.onClose(c.network.Close)
	if c.Client, err = c.network.AddNode(c.cfg.Plan.Client.Name, c.cfg.Plan.Client.Addresses...); err != nil {
		return err
	}
	if c.Site, err = c.network.AddNode(c.cfg.Plan.Site.Name, c.cfg.Plan.Site.Addresses...); err != nil {
		return err
	}
	if c.names, err = standin.NewNameServer(c.Site, c.siteAddr(), standin.ExampleRecord); err != nil {
		return err
	}
	c.onClose(c.names.Close)
	if c.API, err = c.plane(); err != nil {
		return err
	}
	c.onClose(c.API.Close)
	for _, m := range c.cfg.Plan.Nodes {
		if _, err := c.add(m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	return nil
}

// siteAddr is where the site's name server is.
func (c *Cluster) siteAddr() netip.Addr { return c.cfg.Plan.Site.Addresses[0].Addr() }

// etcdAddr is where etcd is: at the last address, which is IPv6 where there are
// both, because the IPv4 addresses of nodes change, and a real node has an etcd of
// its own.
func (c *Cluster) etcdAddr() netip.Addr {
	all := c.cfg.Plan.Site.Addresses
	return all[len(all)-1].Addr()
}

func (c *Cluster) plane() (kubeapi.Plane, error) {
	domain := c.cluster.Config.Spec.Domain
	if !c.cfg.RealAPI {
		return kubeapi.NewStandIn(kubeapi.StandInConfig{Domain: domain})
	}
	dir := filepath.Join(c.cfg.Dir, "api")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return kubeapi.NewReal(kubeapi.RealConfig{
		Dir: dir, Etcd: c.cfg.Programs.Etcd, APIServer: c.cfg.Programs.APIServer,
		Node: c.Site, Addr: c.etcdAddr(), Domain: domain, Log: c.cfg.Log,
	})
}

// Add makes one more node, registers and boots it.
func (c *Cluster) Add(ctx context.Context, m Machine) (*Node, error) {
	n, err := c.add(m)
	if err == nil && n.API != nil {
		err = errors.Join(n.API.Launch(), n.API.AwaitReady(ctx))
	}
	if err == nil {
		err = c.register(ctx, n)
	}
	if err == nil {
		err = n.boot(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("adding %s: %w", m.Name, err)
	}
	return n, nil
}

// boot boots all nodes at once.
func (c *Cluster) boot(ctx context.Context) error {
	return each(c.Nodes(), func(n *Node) error { return n.boot(ctx) })
}

// each calls f for all nodes at once.
func each(nodes []*Node, f func(*Node) error) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			if err := f(n); err != nil {
				errs[i] = fmt.Errorf("%s: %w", n.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Rendered is what the nodes of the cluster have now.
func (c *Cluster) Rendered() *render.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cluster
}

// Spec is what the nodes of the cluster have now.
func (c *Cluster) Spec() *v1alpha1.ClusterConfigSpec { return &c.Rendered().Config.Spec }

// Nodes are those of the cluster, in the order in which they were made.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Node(nil), c.nodes...)
}

// Node returns the node of that name.
func (c *Cluster) Node(name string) (*Node, error) {
	for _, n := range c.Nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the lab has no node %q", name)
}

// ControlPlane are the nodes with an API server, but for the bootstrap.
func (c *Cluster) ControlPlane() (out []*Node) {
	for _, n := range c.Nodes() {
		if n.Role == v1alpha1.RoleMaster {
			out = append(out, n)
		}
	}
	return out
}

// Bootstrap is the bootstrap host, nil if there is none.
func (c *Cluster) Bootstrap() *Node {
	for _, n := range c.Nodes() {
		if n.Role == v1alpha1.RoleBootstrap {
			return n
		}
	}
	return nil
}

// Network is what the machines are attached to.
func (c *Cluster) Network() *netns.Network { return c.network }

// VIPs are the virtual IPs of a group of the cluster, primary family first.
func (c *Cluster) VIPs(role v1alpha1.GroupRole) (out []netip.Addr) {
	for _, g := range c.Spec().Groups {
		if g.Role == role {
			out = append(out, g.VIPs...)
		}
	}
	return out
}

// Holders are the nodes that have the VIP on an interface now.
func (c *Cluster) Holders(vip netip.Addr) (out []*Node, err error) {
	for _, n := range c.Nodes() {
		if !n.On() {
			continue
		}
		has, e := n.Has(vip)
		err = errors.Join(err, e)
		if has {
			out = append(out, n)
		}
	}
	return out, err
}

// settled is how long nothing may change before an election counts as over. It
// spans several adverts of the fast profile.
const settled = 500 * time.Millisecond

// Holder waits until exactly one node has the VIP and goes on having it.
func (c *Cluster) Holder(ctx context.Context, vip netip.Addr) (*Node, error) {
	var last *Node
	since := time.Now()
	err := Await(ctx, fmt.Sprintf("one holder of %v", vip), func() (bool, error) {
		now, err := c.Holders(vip)
		if err != nil || len(now) != 1 {
			last = nil
			return false, err
		}
		if now[0] != last {
			last, since = now[0], time.Now()
		}
		return time.Since(since) >= settled, nil
	})
	return last, err
}

// Await waits for a condition, which it looks at 50 times a second; what says
// which, for the error when ctx ends.
func Await(ctx context.Context, what string, ok func() (bool, error)) error {
	return AwaitEvery(ctx, 20*time.Millisecond, what, ok)
}

// AwaitEvery is Await for a condition that costs something to look at.
func AwaitEvery(ctx context.Context, every time.Duration, what string, ok func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		done, err := ok()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
