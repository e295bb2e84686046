package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/container"
)

const (
	kubeconfig          = "/var/lib/kubelet/kubeconfig"
	bootstrapKubeconfig = "/etc/kubernetes/kubeconfig"
)

// node is a node with the files that Ignition wrote for its role.
type node struct {
	rig.Node
	cluster *cluster
	role    string
	addr    netip.Addr
	pods    map[string]*corev1.Pod // written by Ignition, by name
	control map[string]*corev1.Pod // of the control plane, by name
	agent   string                 // the agent's image
	config  machine.KubeletConfig
	bare    bool  // the operator's own keepalived runs here, and nothing of vipgen
	booted  bool  // before
	laid    *laid // files of the machine-config operator's stand-in; nil where Ignition wrote them
}

// keepLogs copies the logs of the node's containers, if reports are wanted.
func (n *node) keepLogs() {
	if *reports == "" {
		return
	}
	to := filepath.Join(*reports, "logs", n.cluster.t.Name(), n.Name)
	testkit.Check(n.cluster.t, errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(n.Path("/var/log/pods")))))
}

// ignite has Ignition write what vipgen rendered for the node.
func (n *node) ignite() {
	c := n.cluster
	c.t.Helper()
	config, err := os.ReadFile(filepath.Join(c.rendered, "ignition", n.role+".ign"))
	c.must(err)
	c.patiently(func(ctx context.Context) error { return n.Ignite(ctx, rig.Tool(c.t, "ignition"), config) })
	n.readPods()
}

// readPods reads the pods that Ignition wrote, and makes the images that they name.
func (n *node) readPods() {
	c := n.cluster
	c.t.Helper()
	paths, err := filepath.Glob(n.Path(v1alpha1.ManifestDir + "/*.yaml"))
	c.must(err)
	n.pods, n.control = map[string]*corev1.Pod{}, map[string]*corev1.Pod{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		c.must(err)
		pod := &corev1.Pod{}
		c.must(yaml.UnmarshalStrict(data, pod))
		n.pods[pod.Name] = pod
	}
	want := []string{"coredns", "keepalived", "mdns-publisher"}
	if n.role == v1alpha1.RoleMaster || n.role == v1alpha1.RoleWorker && *local == string(v1alpha1.LocalAPIAllNodes) {
		want = slices.Insert(want, 1, "haproxy")
	}
	if got := slices.Sorted(maps.Keys(n.pods)); !slices.Equal(got, want) {
		c.t.Fatalf("Ignition wrote the pods %v, want %v", got, want)
	}
	n.agent = n.pods["mdns-publisher"].Spec.Containers[0].Image
	if c.images[n.agent] == "" {
		c.images[n.agent] = rig.AgentArchive(c.t, n.agent)
	}
	for _, pod := range n.pods {
		name := pod.Spec.Containers[0].Image
		if c.images[name] != "" {
			continue
		}
		var i *image.Image
		switch pod.Name {
		case "coredns":
			i, err = image.Program(name, rig.Tool(c.t, "coredns"), rig.Made)
		case "keepalived", "haproxy":
			i, err = image.Debian(name, rig.Made, "/usr/sbin/"+pod.Name)
		}
		c.images[name] = rig.Archive(c.t, i, err)
	}
}

// boot boots the node, from its network to its pods.
func (n *node) boot() {
	c := n.cluster
	c.t.Helper()
	ips := []netip.Addr{n.addr}
	if !n.bare {
		n.runUnits(n.enabled())
		ips = n.nodeIPs()
	}
	n.config = machine.KubeletConfig{CA: c.ca, NodeIPs: ips}
	if n.role != v1alpha1.RoleBootstrap { // which is not a node
		n.config.Kubeconfig, n.config.Bootstrap = kubeconfig, bootstrapKubeconfig
	}
	var images []string
	if !n.booted {
		images = slices.Sorted(maps.Values(c.images))
	}
	n.Node = rig.Boot(c.t, n.Machine, n.config, images...)
	n.booted = true
}

// powerOff powers the node off, and makes sure that nothing of it remains.
func (n *node) powerOff() {
	n.cluster.t.Helper()
	n.cluster.must(n.PowerOff())
	rig.CheckTraces(n.cluster.t, n.Machine)
}

// powerOn starts the node again.
func (n *node) powerOn() {
	n.cluster.t.Helper()
	n.cluster.must(n.PowerOn())
	n.boot()
}

// enabled returns the node's units that systemd starts.
func (n *node) enabled() []string {
	n.cluster.t.Helper()
	if n.laid != nil {
		return n.laid.enabled()
	}
	units, err := n.EnabledUnits()
	n.cluster.must(err)
	return units
}

// runUnits runs the services among units, as systemd does before kubelet.
func (n *node) runUnits(units []string) {
	c := n.cluster
	c.t.Helper()
	c.must(n.Write("/run/NetworkManager/resolv.conf", []byte("search example.com\nnameserver "+siteAddr+"\n")))
	program := c.agents[n.agent]
	if program == "" {
		program = testkit.Agent(c.t)
	}
	images := map[string]container.Image{n.agent: {Programs: map[string]string{"/usr/bin/vipgen-agent": program}}}
	for _, name := range units {
		if filepath.Ext(name) != ".service" {
			continue
		}
		c.patiently(func(ctx context.Context) error {
			out, err := container.RunUnit(ctx, n.Host, images, name)
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			return err
		})
	}
	resolv, err := n.Read("/etc/resolv.conf")
	if err != nil || !strings.Contains(string(resolv), "nameserver "+n.addr.String()+"\nnameserver "+siteAddr+"\n") {
		c.t.Errorf("resolv.conf of %s: %v\n%s", n.Name, err, resolv)
	}
}

// nodeIPs are the addresses that vipgen has chosen for kubelet.
func (n *node) nodeIPs() (ips []netip.Addr) {
	c := n.cluster
	c.t.Helper()
	data, err := n.Read("/etc/systemd/system/kubelet.service.d/20-nodenet.conf")
	c.must(err)
	for _, field := range strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("\n \"", r) }) {
		if list, ok := strings.CutPrefix(field, "KUBELET_NODE_IPS="); ok {
			for ip := range strings.SplitSeq(list, ",") {
				ips = append(ips, netip.MustParseAddr(ip))
			}
		}
	}
	if !slices.Equal(ips, []netip.Addr{n.addr}) {
		c.t.Errorf("kubelet of %s is given the addresses %v by\n%s", n.Name, ips, data)
	}
	return ips
}

// allPods are the pods of vipgen and of the control plane.
func (n *node) allPods() map[string]*corev1.Pod {
	all := maps.Clone(n.pods)
	maps.Copy(all, n.control)
	return all
}

// awaitPods returns the status of every container of the pods, as pod/container, when
// all are up.
func (n *node) awaitPods() map[string]corev1.ContainerStatus {
	n.cluster.t.Helper()
	out := map[string]corev1.ContainerStatus{}
	pods := n.allPods()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for _, c := range pods[name].Spec.Containers {
			out[name+"/"+c.Name] = n.Await(n.cluster.t, "up", name, c.Name, rig.Running)
		}
	}
	return out
}

// has reports whether a VIP is on the node.
func (n *node) has(vip netip.Addr) bool {
	addrs, err := n.Addresses()
	return err == nil && slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == vip })
}
