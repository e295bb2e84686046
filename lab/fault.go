package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/render"
)

// Kill cuts the power of a node: all its processes end at once and it sends nothing more. Only
// afterwards is its kubelet stopped.
func (n *Node) Kill() error {
	if !n.On() {
		return fmt.Errorf("%s is off already", n.Name)
	}
	errs := []error{n.PowerOff()}
	if n.API != nil && n.API.Running() {
		errs = append(errs, n.API.Kill())
	}
	for _, s := range n.services() {
		s.Stop()
	}
	return errors.Join(append(errs, n.stopKubelet())...)
}

// Heal powers the node on if it was off, sets its link up, starts its services, and returns when
// its pods were started.
func (n *Node) Heal(ctx context.Context) error {
	boots := !n.On()
	if boots {
		if err := n.PowerOn(); err != nil {
			return err
		}
	}
	errs := []error{n.PlugIn(), n.restorePods()}
	if n.API != nil {
		switch {
		case n.API.Running():
			errs = append(errs, n.API.Thaw())
		case !n.gone():
			errs = append(errs, n.API.Launch(), n.API.AwaitReady(ctx))
		}
	}
	if m := n.MachineConfig; m != nil && !m.Running() {
		errs = append(errs, m.Start())
	}
	for _, controller := range n.controllers() {
		if !n.Router(controller).Running() {
			errs = append(errs, n.startRouter(ctx, controller))
		}
	}
	if boots {
		errs = append(errs, n.boot(ctx))
	}
	return errors.Join(errs...)
}

// gone reports whether the node is a bootstrap that has already stopped its keepalived.
func (n *Node) gone() bool {
	_, err := os.Stat(n.Path("/etc/keepalived/.vipgen-bootstrap-gone"))
	return n.Role == v1alpha1.RoleBootstrap && err == nil
}

// Stall pauses the node, as a hypervisor pauses a virtual machine: all its containers and its API
// server. It returns an upper bound of the time that they were paused. Packets that arrive
// meanwhile are queued in the node's kernel, which is not paused; with drop they are lost, and so
// are the kernel's answers. Stand-ins for routers and machine config servers are not paused: no
// process of the node forwards anything to them.
func (n *Node) Stall(ctx context.Context, length time.Duration, drop bool) (stood time.Duration, err error) {
	since := time.Now() // some processes are frozen before the last one
	if err := n.Freeze(ctx); err != nil {
		return 0, err
	}
	errs := []error{n.withAPI(kubeapi.Server.Freeze)}
	if drop {
		errs = append(errs, n.cluster.Partition(n.Name))
	}
	select {
	case <-time.After(length - time.Since(since)):
	case <-ctx.Done():
		errs = append(errs, ctx.Err())
	}
	if drop {
		errs = append(errs, n.cluster.Join())
	}
	// Also when ctx has ended.
	errs = append(errs, n.Thaw(context.WithoutCancel(ctx)), n.withAPI(kubeapi.Server.Thaw))
	return time.Since(since), errors.Join(errs...)
}

func (n *Node) withAPI(do func(kubeapi.Server) error) error {
	if n.API == nil || !n.API.Running() {
		return nil
	}
	return do(n.API)
}

// Unplug sets the node's link down. PlugIn sets it up and restores the addresses, as the node's
// network manager would.
func (n *Node) Unplug() error { return n.SetLink(false) }

// PlugIn undoes Unplug.
func (n *Node) PlugIn() error {
	err := n.SetLink(true)
	for _, a := range n.OwnAddresses() {
		has, e := n.Has(a.Addr())
		if err = errors.Join(err, e); !has && e == nil {
			err = errors.Join(err, n.AddAddress(n.Link, a))
		}
	}
	return errors.Join(err, routeBy(n.Node, n.gateway))
}

// RemovePod stops a pod: it moves the manifest to the directory of disabled manifests, and returns
// when the pod is gone. restore moves the manifest back.
func (n *Node) RemovePod(ctx context.Context, name string) (restore func() error, err error) {
	p, err := n.Kubelet.Pod(name)
	if err != nil {
		return nil, err
	}
	if err := n.MkdirAll(v1alpha1.DisabledManifestDir); err != nil {
		return nil, err
	}
	if err := os.Rename(n.manifest(name), n.disabledManifest(name)); err != nil {
		return nil, err
	}
	restore = func() error { return n.restorePod(name) }
	select {
	case <-p.Gone():
		return restore, nil
	case <-ctx.Done():
		return restore, fmt.Errorf("waiting for pod %s on %s to go: %w", name, n.Name, ctx.Err())
	}
}

func (n *Node) manifest(pod string) string {
	return n.Path(v1alpha1.ManifestDir + "/" + pod + ".yaml")
}

func (n *Node) disabledManifest(pod string) string {
	return n.Path(v1alpha1.DisabledManifestDir + "/" + pod + ".yaml")
}

// restorePod enables a disabled pod; it does nothing if the pod is enabled.
func (n *Node) restorePod(name string) error {
	err := os.Rename(n.disabledManifest(name), n.manifest(name))
	if _, there := os.Stat(n.manifest(name)); errors.Is(err, os.ErrNotExist) && there == nil {
		return nil
	}
	return err
}

// restorePods enables all disabled pods.
func (n *Node) restorePods() error {
	var errs []error
	for _, name := range podsIn(n.Path(v1alpha1.DisabledManifestDir)) {
		errs = append(errs, n.restorePod(name))
	}
	return errors.Join(errs...)
}

// Partition splits the network: the named machines on one side, all others on the other. The client
// and the site belong to the others unless they are named ("client", "site").
func (c *Cluster) Partition(names ...string) error { return c.network.Partition(names...) }

// Join undoes Partition.
func (c *Cluster) Join() error { return c.network.Join() }

// Apply installs a newly rendered cluster on the nodes, as the machine config operator does for
// files that need no reboot: only cluster.yaml, which is the only file that a change of VIPs,
// peers, timing or DNS affects.
func (c *Cluster) Apply(fresh *render.Cluster) error {
	data, err := fresh.Config.Marshal()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.cluster = fresh
	c.mu.Unlock()
	var errs []error
	for _, n := range c.Nodes() {
		errs = append(errs, n.Write(v1alpha1.ClusterConfigPath, data))
	}
	return errors.Join(errs...)
}
