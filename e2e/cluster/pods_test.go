package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/e2e/rig"
)

// capabilities have the numbers of capabilities(7), linux/capability.h.
var capabilities = map[corev1.Capability]uint{"KILL": 5, "SETGID": 6, "SETUID": 7, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_NICE": 23}

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

// unprivileged are the daemons that run without the agent's rights.
var unprivileged = map[string]bool{"coredns": true, "haproxy": true}

// checkPods looks at what kubelet and the API server made of the rendered pods.
func (c *cluster) checkPods() {
	c.t.Helper()
	for _, n := range c.nodes() {
		n.checkSecurity()
		n.checkMirrors()
	}
}

// checkSecurity: what runs has what the manifests give it, and nothing else.
func (n *node) checkSecurity() {
	t := n.cluster.t
	t.Helper()
	statuses := n.awaitPods()
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
			processes, err := n.Processes(rig.ContainerID(statuses[name+"/"+c.Name]))
			if err != nil || len(processes) == 0 {
				t.Errorf("%s: %d processes, %v", c.Name, len(processes), err)
			}
			for _, p := range processes {
				has, user := want, 0
				if unprivileged[p.Name] {
					has, user = 1<<capabilities["NET_BIND_SERVICE"], supervise.DaemonUser
				}
				if p.Bounding != want || p.Permitted != has || p.Effective != has || !p.NoNewPrivileges || !p.ReadOnlyRoot || int(p.UID) != user {
					t.Errorf("%s of %s on %s: %+v, want user %d, the capabilities %x of %x and a read-only root", p.Name, c.Name, n.Name, p, user, has, want)
				}
			}
		}
	}
}

// checkMirrors: the API server takes the pods of the node's kubelet, with the priority
// of their class.
func (n *node) checkMirrors() {
	c := n.cluster
	c.t.Helper()
	c.until("the pods of "+n.Name+" in the API", func() bool {
		out := c.kubectl("get", "pods", "-n", podNamespace, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.spec.priority}{"\n"}{end}`)
		for name := range n.pods {
			if !strings.Contains(out, name+"-"+n.Name+" Running 2000001000\n") {
				return false
			}
		}
		return true
	})
}
