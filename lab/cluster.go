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

// Config configures a lab.
type Config struct {
	// Cluster is the rendered cluster that the nodes install.
	Cluster *render.Cluster
	Plan    *Plan
	// Dir is an empty directory for the files of the lab.
	Dir      string
	Programs Programs
	// Images are further images for manifests and units, besides the cluster's own.
	Images map[string]container.Image
	// RealAPI selects real API servers and etcd instead of stand-ins.
	RealAPI bool
	// Install writes a node's files to its host; nil writes the files that vipgen renders.
	Install func(*Node) error
	// BackOff delays restarts of containers that fail repeatedly; the zero value is kubelet's.
	BackOff pod.BackOff
	// Record is called with the name of every network namespace before it is created. The control
	// groups of a host are below the group of the same name. It may be nil.
	Record func(namespace string) error
	// Log receives the lab's log; it may be nil.
	Log *slog.Logger
	// Progress is called with a short description of each step; it may be nil.
	Progress func(string)
}

// Cluster is a running lab.
type Cluster struct {
	// Client sends requests to the VIPs from outside the cluster. Site runs the name server that
	// the nodes' network provides.
	Client, Site *netns.Node
	API          kubeapi.Plane

	cfg     Config
	network *netns.Network
	images  map[string]container.Image
	names   *standin.Service // the site's name server

	mu      sync.Mutex
	cluster *render.Cluster // installed on the nodes now
	nodes   []*Node
	closers []func() error
}

// New builds a lab: the network and the machines, the API servers with the objects that an
// installer creates, and then the boot of every node, from its network to its pods. If it fails or
// ctx ends, it removes what it built. The caller must Close the lab.
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

// Close ends all processes of the lab and removes its namespaces and control groups. The directory
// stays.
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

// onClose registers f for Close, which calls the functions in reverse order.
func (c *Cluster) onClose(f func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closers = append(c.closers, f)
}

// build creates the network, the machines and the services of the site.
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
	if err := errors.Join(routeBy(c.Client, c.cfg.Plan.Client.Gateway), routeBy(c.Site, c.cfg.Plan.Site.Gateway)); err != nil {
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

// routeBy sets the default route of a machine; it does nothing without a gateway.
func routeBy(n *netns.Node, gateway netip.Addr) error {
	if !gateway.IsValid() {
		return nil
	}
	if out, err := n.Command(context.Background(), "ip", "route", "replace", "default", "via", gateway.String()).CombinedOutput(); err != nil {
		return fmt.Errorf("routing %s: %w: %s", n.Name, err, out)
	}
	return nil
}

// siteAddr returns the address of the site's name server.
func (c *Cluster) siteAddr() netip.Addr { return c.cfg.Plan.Site.Addresses[0].Addr() }

// etcdAddr returns the address of etcd: the site's last one, which is IPv6 in dual stack. Scenarios
// renumber the nodes' IPv4 addresses, and a real node would have its own etcd.
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

// boot boots all nodes in parallel.
func (c *Cluster) boot(ctx context.Context) error {
	return each(c.Nodes(), func(n *Node) error { return n.boot(ctx) })
}

// each calls f for all nodes in parallel.
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

// Rendered returns the cluster that is installed on the nodes now.
func (c *Cluster) Rendered() *render.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cluster
}

// Spec returns the spec that is installed on the nodes now.
func (c *Cluster) Spec() *v1alpha1.ClusterConfigSpec { return &c.Rendered().Config.Spec }

// Nodes returns the nodes in order of creation.
func (c *Cluster) Nodes() []*Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Node(nil), c.nodes...)
}

// Node returns the node with a name.
func (c *Cluster) Node(name string) (*Node, error) {
	for _, n := range c.Nodes() {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("the lab has no node %q", name)
}

// ControlPlane returns the nodes with an API server, without the bootstrap.
func (c *Cluster) ControlPlane() (out []*Node) {
	for _, n := range c.Nodes() {
		if n.Role == v1alpha1.RoleMaster {
			out = append(out, n)
		}
	}
	return out
}

// Bootstrap returns the bootstrap host, nil if there is none.
func (c *Cluster) Bootstrap() *Node {
	for _, n := range c.Nodes() {
		if n.Role == v1alpha1.RoleBootstrap {
			return n
		}
	}
	return nil
}

// Network returns the network of the machines.
func (c *Cluster) Network() *netns.Network { return c.network }

// VIPs returns the virtual IPs of a group of the cluster, primary family first.
func (c *Cluster) VIPs(role v1alpha1.GroupRole) (out []netip.Addr) {
	for _, g := range c.Spec().Groups {
		if g.Role == role {
			out = append(out, g.VIPs...)
		}
	}
	return out
}

// Holders returns the nodes that have the VIP on an interface.
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

// settled is the time without a change after which an election is over. It spans several
// advertisement intervals of the fast profile.
const settled = 500 * time.Millisecond

// Holder waits until exactly one node holds the VIP, for at least settled.
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

// Await polls a condition 50 times a second until it is true. what names the condition in the error
// that Await returns when ctx ends.
func Await(ctx context.Context, what string, ok func() (bool, error)) error {
	return AwaitEvery(ctx, 20*time.Millisecond, what, ok)
}

// AwaitEvery is Await with another poll interval, for conditions that are expensive to check.
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
