package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/golden/daemon"
	"github.com/vipgen/vipgen/lab/container"
	"github.com/vipgen/vipgen/lab/host"
	"github.com/vipgen/vipgen/lab/kubeapi"
	"github.com/vipgen/vipgen/lab/pod"
	"github.com/vipgen/vipgen/lab/standin"
	"github.com/vipgen/vipgen/lab/unit"
)

// node is a node of the cluster.
type node struct {
	*host.Host
	cluster *cluster
	role    string
	addrs   []netip.Prefix
	api     *daemon.APIServer // of a control-plane node
	kubelet *pod.Kubelet
	stop    func() // of kubelet
}

// add makes a node with the files that were rendered for its role, and the
// services of it that are no business of vipgen's.
func (c *cluster) add(name, role string, n int) *node {
	c.t.Helper()
	ns, err := c.network.AddNode(name, addresses(n)...)
	if err != nil {
		c.t.Fatal(err)
	}
	h, err := host.New(ns, c.top.TempDir())
	if err != nil {
		c.t.Fatal(err)
	}
	c.top.Cleanup(func() {
		if err := h.Close(); err != nil {
			c.top.Error(err)
		}
	})
	node := &node{Host: h, cluster: c, role: role, addrs: addresses(n)}
	if err := h.Install(filepath.Join(c.tree, "files", role)); err != nil {
		c.t.Fatal(err)
	}
	node.credentials()
	if role == "master" {
		node.api = c.control.APIServer(ns, addresses(n)[0].Addr(), c.vips...)
		c.serve(standin.NewMachineConfig(ns, v1alpha1.DefaultPorts.MachineConfig))
	}
	c.nodes = append(c.nodes, node)
	return node
}

// credentials are where kubelet has them, in the form that it has them.
func (n *node) credentials() {
	n.cluster.t.Helper()
	if _, err := kubeapi.WriteKubeconfig(n.Path("/"), "/var/lib/kubelet", n.cluster.control.CA.Authority, n.Name, "api-int."+domain+":6443"); err != nil {
		n.cluster.t.Fatal(err)
	}
}

// register makes the node known as its kubelet does.
func (n *node) register() {
	n.cluster.t.Helper()
	api := n.cluster.api()
	labels := `"node-role.kubernetes.io/` + n.role + `":""`
	if n.role == "master" {
		labels += `,"node-role.kubernetes.io/control-plane":""`
	}
	api.Create("/api/v1/nodes", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%s}}}`, n.Name, labels))
	n.report()
}

// report puts the node's addresses into its status.
func (n *node) report() {
	n.cluster.t.Helper()
	var list []string
	for _, a := range n.addrs {
		list = append(list, fmt.Sprintf(`{"type":"InternalIP","address":%q}`, a.Addr()))
	}
	n.cluster.api().Patch("/api/v1/nodes/"+n.Name+"/status", []byte(`{"status":{"addresses":[`+strings.Join(list, ",")+`]}}`))
}

// backOff is shorter than kubelet's, so that nobody waits for minutes.
var backOff = pod.BackOff{Initial: time.Second, Max: 30 * time.Second, Reset: time.Minute}

// boot does what happens on a node from its network to its pods.
func (n *node) boot() {
	n.cluster.t.Helper()
	n.write("/run/NetworkManager/resolv.conf", "search example.com\nnameserver "+upstream.String()+"\n")
	n.runUnit("nodeip-configuration.service")
	n.runUnit("on-prem-resolv-prepender.service")
	n.kubelet = &pod.Kubelet{Host: n.Host, Images: n.cluster.images, BackOff: backOff, Log: n.cluster.log}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.kubelet.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		if n.cluster.top.Failed() {
			n.dump()
		}
		cancel()
		if err := <-done; err != nil {
			n.cluster.top.Errorf("kubelet of %s: %v", n.Name, err)
		}
	})
	n.cluster.top.Cleanup(n.stop)
}

// dump logs what the node's containers said.
func (n *node) dump() {
	for _, p := range n.kubelet.Pods() {
		for _, c := range p.Containers {
			lines := strings.Split(c.Log(), "\n")
			n.cluster.top.Logf("log of %s on %s, %+v:\n%s", c.Name, n.Name, c.Status(), strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	}
}

func (n *node) runUnit(name string) {
	n.cluster.t.Helper()
	ctx, cancel := context.WithTimeout(n.cluster.t.Context(), patience)
	defer cancel()
	out, err := unit.Run(ctx, n.Host, n.cluster.images, name)
	if err != nil {
		n.cluster.t.Fatalf("%v\n%s", err, out)
	}
}

// powerOff is a power loss. Kubelet notices that it is dead afterwards.
func (n *node) powerOff() {
	n.cluster.t.Helper()
	if err := n.PowerOff(); err != nil {
		n.cluster.t.Fatal(err)
	}
	n.stop()
}

func (n *node) powerOn() {
	n.cluster.t.Helper()
	if err := n.PowerOn(); err != nil {
		n.cluster.t.Fatal(err)
	}
	n.boot()
	if n.api != nil {
		n.api.Start()
	}
}

func (n *node) write(path, text string) {
	n.cluster.t.Helper()
	if err := n.Write(path, []byte(text)); err != nil {
		n.cluster.t.Fatal(err)
	}
}

func (n *node) read(path string) string {
	n.cluster.t.Helper()
	data, err := n.Read(path)
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return string(data)
}

func (n *node) ip(args ...string) {
	n.cluster.t.Helper()
	if err := n.Run(nil, "ip", args...); err != nil {
		n.cluster.t.Fatal(err)
	}
}

// manifest is where a pod's manifest is on this machine.
func (n *node) manifest(pod string) string { return n.Path(v1alpha1.ManifestDir + "/" + pod + ".yaml") }

// removePod takes a manifest away, returns when the pod is gone, and what puts
// it back.
func (n *node) removePod(name string) (restore func()) {
	n.cluster.t.Helper()
	text := n.read(v1alpha1.ManifestDir + "/" + name + ".yaml")
	p, err := n.kubelet.Pod(name)
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	if err := os.Remove(n.manifest(name)); err != nil {
		n.cluster.t.Fatal(err)
	}
	<-p.Gone()
	return func() { n.write(v1alpha1.ManifestDir+"/"+name+".yaml", text) }
}

// container returns a container of a pod, once it runs.
func (n *node) container(podName, name string) *pod.Container {
	n.cluster.t.Helper()
	var c *pod.Container
	await(n.cluster.t, fmt.Sprintf("container %s of pod %s on %s", name, podName, n.Name), func() bool {
		found, err := n.kubelet.Container(podName, name)
		c = found
		return err == nil && c.Status().Running
	})
	return c
}

func (n *node) running(podName, name string) *container.Container {
	n.cluster.t.Helper()
	c, err := n.container(podName, name).Running()
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return c
}

// exec runs a program in a container, for which it has to end well.
func (n *node) exec(podName, name string, args ...string) string {
	n.cluster.t.Helper()
	out, code, err := n.container(podName, name).Exec(n.cluster.t.Context(), args...)
	if err != nil || code != 0 {
		n.cluster.t.Errorf("%s in %s on %s: exit code %d, %v\n%s", args, name, n.Name, code, err, out)
	}
	return out
}

// published reads what a job of the node says; false if it does not run.
func published[T any](n *node, name string) (v T, alive bool) {
	n.cluster.t.Helper()
	dir, err := state.Open(n.Path(v1alpha1.RunDir))
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	defer dir.Close()
	if alive, err = dir.Read(name, &v); err != nil {
		n.cluster.t.Fatal(err)
	}
	return v, alive
}

// holds says whether the node has a VIP now.
func (n *node) holds(vip netip.Addr) bool {
	n.cluster.t.Helper()
	addrs, err := n.Addresses()
	if err != nil {
		n.cluster.t.Fatal(err)
	}
	return slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == vip })
}
