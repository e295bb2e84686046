package machine

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestRenderedPods boots a control-plane node from what vipgen renders, with a real
// API server, and looks at what kubelet makes of its pods.
func TestRenderedPods(t *testing.T) {
	n := newControlPlane(t)
	n.boot()
	statuses := n.awaitPods(running)
	t.Run("security", func(t *testing.T) { n.checkSecurity(t, statuses) })
	t.Run("mirrors", n.checkMirrors)
	t.Run("VIP", n.checkVIP)
	t.Run("probes", func(t *testing.T) { n.checkProbes(t, statuses) })
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
		n.checkSecurity(t, n.awaitPods(running))
		n.checkVIP(t)
	})
}

// capabilities have the numbers of capabilities(7), linux/capability.h.
var capabilities = map[corev1.Capability]uint{"NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_NICE": 23}

// checkSecurity: what runs has what the manifests give it, and nothing else.
func (n *controlPlane) checkSecurity(t *testing.T, statuses map[string]corev1.ContainerStatus) {
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
func (n *controlPlane) checkMirrors(t *testing.T) {
	n.kubectl("wait", "node", n.Name, "--for=condition=Ready", "--timeout", patience.String())
	eventually(t, "the pods in the API", func() bool {
		out := n.kubectl("get", "pods", "-n", podNamespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.spec.priority}{"\n"}{end}`)
		for name := range n.pods {
			if !strings.Contains(out, name+"-master-0 Running 2000001000\n") {
				return false
			}
		}
		return true
	})
}

// checkVIP: the node, the only one of its cluster that runs, comes to hold the API VIP.
func (n *controlPlane) checkVIP(t *testing.T) {
	eventually(t, "the API VIP to be on the node", func() bool {
		addrs, err := n.Addresses()
		return err == nil && slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == apiVIP })
	})
}

// hangs are the processes that a probe asks, by pod and container. The firewall's asks
// none: it finds out whether the job is there, and one that hangs is.
var hangs = map[string]string{
	"coredns/coredns":               "coredns",
	"haproxy/haproxy":               "haproxy",
	"keepalived/keepalived":         "keepalived",
	"mdns-publisher/mdns-publisher": "vipgen-agent",
}

// checkProbes: kubelet starts every container again whose daemon hangs.
func (n *controlPlane) checkProbes(t *testing.T, before map[string]corev1.ContainerStatus) {
	for _, name := range slices.Sorted(maps.Keys(hangs)) {
		n.freeze(t, containerID(before[name]), hangs[name])
	}
	for _, name := range slices.Sorted(maps.Keys(hangs)) {
		pod, container, _ := strings.Cut(name, "/")
		n.await(t, "another one", pod, container, func(s corev1.ContainerStatus) bool {
			return running(s) && s.ContainerID != before[name].ContainerID
		})
		eventually(t, "kubelet to say why "+name+" is another one", func() bool {
			out := n.kubectl("get", "events", "-n", podNamespace, "--field-selector", "reason=Killing,involvedObject.name="+pod+"-master-0", "-o", "jsonpath={.items[*].message}")
			return strings.Contains(out, fmt.Sprintf("Container %s failed liveness probe, will be restarted", container))
		})
	}
}

// freeze stops processes of a container where they are.
func (n *controlPlane) freeze(t *testing.T, containerID, process string) {
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
