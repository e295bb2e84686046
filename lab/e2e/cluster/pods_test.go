package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// capabilities have the numbers of capabilities(7), linux/capability.h.
var capabilities = map[corev1.Capability]uint{"KILL": 5, "SETGID": 6, "SETUID": 7, "NET_BIND_SERVICE": 10, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_NICE": 23}

// daemons and agents are the processes that probes query, by pod and container.
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

// checkPods checks how kubelet and the API server run the rendered pods.
func (c *cluster) checkPods() {
	c.t.Helper()
	for _, n := range c.nodes() {
		n.checkSecurity()
		n.checkMirrors()
	}
}

// checkSecurity: running containers have the privileges of their manifests, and no others.
func (n *node) checkSecurity() {
	t := n.cluster.t
	t.Helper()
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
			// The runtime's process becomes that of a probe, and the agent's a daemon's.
			var wrong []string
			testkit.AwaitWithin(t, rig.Patience, "processes of "+c.Name+" on "+n.Name+" with the privileges of their manifest", func() bool {
				wrong = n.wrong(rig.ContainerID(n.Await(t, "up", name, c.Name, rig.Running)), want)
				return len(wrong) == 0
			}, func() string { return strings.Join(wrong, "\n") })
		}
	}
}

// wrong returns the processes of a container without the expected privileges: its capabilities,
// or those of an unprivileged daemon.
func (n *node) wrong(containerID string, capable uint64) (out []string) {
	processes, err := n.Processes(containerID)
	if err != nil || len(processes) == 0 {
		return []string{fmt.Sprintf("%d processes, %v", len(processes), err)}
	}
	for _, p := range processes {
		has, user := capable, 0
		if unprivileged[p.Name] {
			has, user = 1<<capabilities["NET_BIND_SERVICE"], supervise.DaemonUser
		}
		if p.Bounding != capable || p.Permitted != has || p.Effective != has || !p.NoNewPrivileges || !p.ReadOnlyRoot || p.UID != user {
			out = append(out, fmt.Sprintf("%s: %+v, want user %d, the capabilities %x of %x and a read-only root", p.Name, p, user, has, capable))
		}
	}
	return out
}

// checkMirrors: the API server accepts the mirror pods of the node's kubelet, with the priority
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
