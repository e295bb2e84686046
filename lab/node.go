package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/lab/testbed/standin"
)

// Node is a node of a lab's cluster.
type Node struct {
	*host.Host
	Role string
	// API is the API server of a control-plane node and of the bootstrap.
	API kubeapi.Server
	// MachineConfig is a stand-in for the machine config server; nil on nodes without one.
	MachineConfig *standin.Service
	Kubelet       *pod.Kubelet

	cluster *Cluster
	gateway netip.Addr

	mu        sync.Mutex
	addresses []netip.Prefix
	routers   map[string]*standin.Service // by ingress controller
	stop      func() error                // stops kubelet; nil before the first boot
}

// add creates a node with the files that are rendered for its role, and stand-ins for the services
// that vipgen does not render.
func (c *Cluster) add(m Machine) (*Node, error) {
	ns, err := c.network.AddNode(m.Name, m.Addresses...)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.cfg.Dir, "nodes", m.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	h, err := host.NewWithRun(ns, dir)
	if err != nil {
		return nil, err
	}
	n := &Node{Host: h, Role: m.Role, cluster: c, gateway: m.Gateway, addresses: m.Addresses, routers: map[string]*standin.Service{}}
	n.Kubelet = &pod.Kubelet{Host: h, Images: c.images, BackOff: c.cfg.BackOff, Log: c.cfg.Log}
	c.onClose(n.close)
	c.mu.Lock()
	c.nodes = append(c.nodes, n)
	c.mu.Unlock()
	if err := errors.Join(n.install(), n.credentials()); err != nil {
		return nil, err
	}
	return n, n.serve()
}

// serve prepares the services of a control-plane node, and of the bootstrap.
func (n *Node) serve() (err error) {
	if n.Role != v1alpha1.RoleMaster && n.Role != v1alpha1.RoleBootstrap {
		return nil
	}
	// Clients of additional API VIPs have to verify a name, as in any cluster.
	valid := append(slices.Clone(n.cluster.Spec().Groups[0].VIPs), n.Address())
	if n.API, err = n.cluster.API.Server(n.Node, n.Address(), valid...); err != nil {
		return err
	}
	n.MachineConfig, err = standin.NewMachineConfig(n.Node, n.cluster.Spec().Ports.MachineConfig)
	return err
}

func (n *Node) close() error {
	errs := []error{n.stopKubelet()}
	for _, s := range n.services() {
		errs = append(errs, s.Close())
	}
	if n.API != nil && n.API.Running() {
		errs = append(errs, n.API.Kill())
	}
	return errors.Join(append(errs, n.Host.Close())...)
}

// services returns the stand-ins on the node.
func (n *Node) services() (out []*standin.Service) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.MachineConfig != nil {
		out = append(out, n.MachineConfig)
	}
	for _, name := range sortedKeys(n.routers) {
		out = append(out, n.routers[name])
	}
	return out
}

// install writes the node's files to its host.
func (n *Node) install() error {
	if n.cluster.cfg.Install != nil {
		return n.cluster.cfg.Install(n)
	}
	return n.installRendered()
}

// installRendered writes the files that vipgen renders for the node's role.
func (n *Node) installRendered() error {
	bundles, err := n.cluster.Rendered().Bundles()
	if err != nil {
		return err
	}
	for _, b := range bundles {
		if b.Role != n.Role {
			continue
		}
		for _, f := range b.Files {
			if n.leavesOut(f.Path) {
				continue
			}
			if err := n.Write(f.Path, f.Contents); err != nil {
				return err
			}
		}
		for _, u := range b.Units {
			if err := n.Write(host.UnitDir+"/"+u.Name, []byte(u.Contents)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("vipgen renders nothing for the role %q; a bootstrap host is vipgen's own with loadBalancer.type UserManaged alone", n.Role)
}

// leavesOut reports whether a file belongs to a pod whose program this machine lacks.
func (n *Node) leavesOut(path string) bool {
	return n.cluster.cfg.Programs.CoreDNS == "" && path == v1alpha1.ManifestDir+"/coredns.yaml"
}

// kubeletDir is kubelet's data directory.
const kubeletDir = "/var/lib/kubelet"

// credentials writes kubelet's credentials. The bootstrap has those of a cluster administrator, and
// uses its own API server.
func (n *Node) credentials() error {
	ca := n.cluster.API.CA()
	if n.Role != v1alpha1.RoleBootstrap {
		_, err := kubeapi.WriteKubeconfig(n.Path("/"), kubeletDir, ca, n.Name, "api-int."+n.cluster.Spec().Domain+":6443")
		return err
	}
	pair, err := ca.Client("admin", "system:masters")
	if err != nil {
		return err
	}
	config := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://localhost:6443", certificate-authority-data: ` + base64Of(ca.CertPEM) + `}}]
users: [{name: u, user: {client-certificate-data: ` + base64Of(pair.Cert) + `, client-key-data: ` + base64Of(pair.Key) + `}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`
	return n.WriteMode("/etc/kubernetes/kubeconfig", []byte(config), 0o600)
}

// boot boots the node, from its network to its pods.
func (n *Node) boot(ctx context.Context) error {
	config := n.cluster.Rendered().Config
	resolv := "search " + strings.TrimPrefix(config.Spec.Domain, config.Metadata.Name+".") + "\nnameserver " + n.cluster.siteAddr().String() + "\n"
	if err := n.Write("/run/NetworkManager/resolv.conf", []byte(resolv)); err != nil {
		return err
	}
	if err := n.configureAddress(ctx); err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	done, err := n.Kubelet.Start(running)
	if err != nil {
		cancel()
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	return nil
}

// configureAddress runs the units that choose the node's address and write its
// resolv.conf.
func (n *Node) configureAddress(ctx context.Context) error {
	if err := routeBy(n.Node, n.gateway); err != nil {
		return err
	}
	for _, u := range []string{"nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
		if _, err := os.Stat(n.Path(host.UnitDir + "/" + u)); err != nil {
			continue // not on the bootstrap, nor with another Install
		}
		if out, err := container.RunUnit(ctx, n.Host, n.cluster.images, u); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
	}
	return nil
}

func (n *Node) stopKubelet() error {
	n.mu.Lock()
	stop := n.stop
	n.mu.Unlock()
	if stop == nil {
		return nil
	}
	return stop()
}

// Address returns the node's first address.
func (n *Node) Address() netip.Addr { return n.OwnAddresses()[0].Addr() }

// Gateway returns the router of the node's subnet, which is not valid where it has none.
func (n *Node) Gateway() netip.Addr { return n.gateway }

// OwnAddresses returns the node's addresses without VIPs.
func (n *Node) OwnAddresses() []netip.Prefix {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.addresses)
}

// Has reports whether an address is on any interface of the node.
func (n *Node) Has(addr netip.Addr) (bool, error) {
	all, err := n.Present()
	return slices.Contains(all, addr), err
}

// Present returns the addresses on all interfaces of the node.
func (n *Node) Present() (all []netip.Addr, err error) {
	err = n.Do(func() error {
		list, err := netdump.Addresses()
		if err != nil {
			return fmt.Errorf("listing the addresses of %s: %w", n.Name, err)
		}
		for _, a := range list {
			addr, _ := netip.AddrFromSlice(a.IP)
			all = append(all, addr.Unmap())
		}
		return nil
	})
	return all, err
}

// Container waits for a container of a pod and returns it.
func (n *Node) Container(ctx context.Context, podName, name string) (c *pod.Container, err error) {
	err = Await(ctx, fmt.Sprintf("container %s of pod %s on %s", name, podName, n.Name), func() (bool, error) {
		found, err := n.Kubelet.Container(podName, name)
		if err != nil || !found.Status().Running {
			return false, nil
		}
		c = found
		return true, nil
	})
	return c, err
}

// Running waits until a container of a pod runs and returns the running instance.
func (n *Node) Running(ctx context.Context, podName, name string) (*container.Container, error) {
	c, err := n.Container(ctx, podName, name)
	if err != nil {
		return nil, err
	}
	return c.Running()
}

// Signal sends a signal to the processes with a name in a container of a pod. It returns an error
// if there are none.
func (n *Node) Signal(ctx context.Context, podName, name, process string, s syscall.Signal) error {
	c, err := n.Running(ctx, podName, name)
	if err != nil {
		return err
	}
	count, err := c.KillProcess(process, s)
	if err == nil && count == 0 {
		err = fmt.Errorf("no process %s in container %s on %s", process, name, n.Name)
	}
	return err
}

// Published reads the state that a job of the agent publishes on a node; nil if the job does not
// run.
func Published[T state.Job](n *Node) (*T, error) {
	if _, err := os.Stat(n.Path(v1alpha1.RunDir)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	dir, err := state.Open(n.Path(v1alpha1.RunDir))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return state.Read[T](dir)
}

// Logs returns the last lines of every container on the node.
func (n *Node) Logs(lines int) string {
	var b strings.Builder
	for _, p := range n.Kubelet.Pods() {
		for _, c := range p.Containers {
			all := strings.Split(strings.TrimRight(c.Log(), "\n"), "\n")
			fmt.Fprintf(&b, "--- %s: %s/%s %+v\n%s\n", n.Name, p.Name, c.Name, c.Status(), strings.Join(all[max(0, len(all)-lines):], "\n"))
		}
	}
	return b.String()
}
