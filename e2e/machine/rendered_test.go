package machine

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// TestRenderedPods boots a control-plane node from what vipgen renders, with a real
// API server, and looks at what kubelet makes of its pods.
func TestRenderedPods(t *testing.T) {
	n := newCluster(t).add("master-0", v1alpha1.RoleMaster, "192.0.2.10")
	n.startAPI()
	n.prepareCluster()
	n.registerNodes()
	n.boot()
	statuses := n.awaitPods()
	t.Run("security", func(t *testing.T) { n.checkSecurity(t, statuses) })
	t.Run("mirrors", n.checkMirrors)
	t.Run("VIP", n.checkVIP)
	t.Run("probes of daemons", func(t *testing.T) { n.checkProbes(t, daemons) })
	t.Run("probes of agents", func(t *testing.T) { n.checkProbes(t, agents) })
	t.Run("reboot", func(t *testing.T) {
		if err := n.PowerOff(); err != nil {
			t.Fatal(err)
		}
		for _, trace := range traces(t, n.Machine) {
			t.Errorf("without power there is %s", trace)
		}
		if err := n.PowerOn(); err != nil {
			t.Fatal(err)
		}
		n.boot()
		n.checkSecurity(t, n.awaitPods())
		n.checkVIP(t)
	})
}

// registerNodes makes the machine known as a node that has been there before, as after
// a reboot, with a peer, which is a Node and nothing else. On a cluster that is being
// installed the bootstrap host holds the VIP by which a kubelet registers its node;
// here there is none, and a node that is not registered takes no part (hard case 3).
func (n *clusterNode) registerNodes() {
	c := n.cluster
	c.t.Helper()
	for name, addr := range map[string]string{n.Name: n.addr.String(), "master-1": "192.0.2.11"} {
		node := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q, "labels": {"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""}}}`, name)
		status := fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": %q}]}}`, addr)
		c.patiently(func(ctx context.Context) error { return c.plane.Create(ctx, "/api/v1/nodes", []byte(node)) })
		c.patiently(func(ctx context.Context) error {
			return c.plane.Patch(ctx, "/api/v1/nodes/"+name+"/status", []byte(status))
		})
	}
}

// capabilities have the numbers of capabilities(7), linux/capability.h.
var capabilities = map[corev1.Capability]uint{"NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_NICE": 23}

// checkSecurity: what runs has what the manifests give it, and nothing else.
func (n *clusterNode) checkSecurity(t *testing.T, statuses map[string]corev1.ContainerStatus) {
	for _, name := range slices.Sorted(maps.Keys(n.pods)) {
		for _, c := range n.pods[name].Spec.Containers {
			var want uint64
			for _, added := range c.SecurityContext.Capabilities.Add {
				number, known := capabilities[added]
				if !known {
					t.Fatalf("%s: no number is known for %s", c.Name, added)
				}
				want |= 1 << number
			}
			processes, err := n.Processes(containerID(statuses[name+"/"+c.Name]))
			if err != nil || len(processes) == 0 {
				t.Errorf("%s: %d processes, %v", c.Name, len(processes), err)
			}
			for _, p := range processes {
				if p.Bounding != want || p.Permitted != want || p.Effective != want || !p.NoNewPrivileges || !p.ReadOnlyRoot || p.UID != 0 {
					t.Errorf("%s of %s: %+v, want the capabilities %x and a read-only root", p.Name, c.Name, p, want)
				}
			}
		}
	}
}

// checkMirrors: the API server takes the pods of the node's kubelet, with the priority
// of their class.
func (n *clusterNode) checkMirrors(t *testing.T) {
	n.kubectl("wait", "node", n.Name, "--for=condition=Ready", "--timeout", patience.String())
	eventually(t, "the pods in the API", func() bool {
		out := n.kubectl("get", "pods", "-n", podNamespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.spec.priority}{"\n"}{end}`)
		for name := range n.pods {
			if !strings.Contains(out, name+"-"+n.Name+" Running 2000001000\n") {
				return false
			}
		}
		return true
	})
}

// checkVIP: the node, the only one of its cluster that runs, comes to hold the API VIP.
func (n *clusterNode) checkVIP(t *testing.T) {
	eventually(t, "the API VIP to be on "+n.Name, n.holdsVIP)
}

func (n *clusterNode) holdsVIP() bool {
	addrs, err := n.Addresses()
	return err == nil && slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == apiVIP })
}

// daemons and agents are the processes that probes ask, by pod and container.
var (
	daemons = map[string]string{
		"coredns/coredns":       "coredns",
		"haproxy/haproxy":       "haproxy",
		"keepalived/keepalived": "keepalived",
	}
	agents = map[string]string{
		"coredns/coredns":               "vipgen-agent",
		"haproxy/firewall":              "vipgen-agent",
		"haproxy/haproxy":               "vipgen-agent",
		"keepalived/keepalived":         "vipgen-agent",
		"mdns-publisher/mdns-publisher": "vipgen-agent",
	}
)

// checkProbes: kubelet starts every container again in which a process hangs.
func (n *clusterNode) checkProbes(t *testing.T, hangs map[string]string) {
	before := n.awaitPods()
	for _, name := range slices.Sorted(maps.Keys(hangs)) {
		n.freeze(t, containerID(before[name]), hangs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(hangs)) {
		pod, container, _ := strings.Cut(name, "/")
		n.await(t, "another one", pod, container, func(s corev1.ContainerStatus) bool {
			return running(s) && s.ContainerID != before[name].ContainerID
		})
		eventually(t, "kubelet to say why "+name+" is another one", func() bool {
			out := n.kubectl("get", "events", "-n", podNamespace, "--field-selector", "reason=Killing,involvedObject.name="+pod+"-"+n.Name, "-o", "jsonpath={.items[*].message}")
			return strings.Contains(out, fmt.Sprintf("Container %s failed liveness probe, will be restarted", container))
		})
	}
}

// freeze stops processes of a container where they are.
func (n *clusterNode) freeze(t *testing.T, containerID, process string) {
	t.Helper()
	processes, err := n.Processes(containerID)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, p := range processes {
		if p.Name == process {
			count++
			if err := syscall.Kill(p.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count == 0 {
		t.Errorf("there is no process %s among %+v", process, processes)
	}
}

func containerID(s corev1.ContainerStatus) string {
	return strings.TrimPrefix(s.ContainerID, "containerd://")
}
