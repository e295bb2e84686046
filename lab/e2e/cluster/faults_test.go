package cluster

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// signal sends a signal to processes of a container.
func (n *node) signal(s syscall.Signal, pod, container, name string) {
	n.cluster.t.Helper()
	for _, pid := range n.processes(pod, container, name) {
		if err := syscall.Kill(pid, s); err != nil && err != syscall.ESRCH {
			n.cluster.t.Fatal(err)
		}
	}
}

// replaced waits until kubelet has started a container again.
func (n *node) replaced(pod, container string, old corev1.ContainerStatus) {
	n.cluster.t.Helper()
	n.Await(n.cluster.t, "another one", pod, container, func(s corev1.ContainerStatus) bool {
		return rig.Running(s) && s.ContainerID != old.ContainerID
	})
}

// kill kills containers of a pod, with all of their processes at once.
func (c *cluster) kill(name, what, pod string, on func() *node, containers ...string) fault {
	var n *node
	old := map[string]corev1.ContainerStatus{}
	return fault{
		name: name, what: what,
		do: func() {
			n = on()
			for _, container := range containers {
				old[container] = n.Await(c.t, "up", pod, container, rig.Running)
			}
			for _, container := range containers {
				n.signal(syscall.SIGKILL, pod, container, "")
			}
		},
		over: func() {
			for _, container := range containers {
				n.replaced(pod, container, old[container])
			}
		},
	}
}

func names(pod *corev1.Pod) (out []string) {
	for _, c := range pod.Spec.Containers {
		out = append(out, c.Name)
	}
	return out
}

// faults returns all faults of a complete run, in order.
func (c *cluster) faults() []fault {
	holder := func() *node { return c.holder(c.vip) }
	list := []fault{c.powerLoss(), c.kubeletStopped(), c.containerdStopped()}
	for _, container := range names(c.masters[0].pods["keepalived"]) {
		list = append(list, c.kill("keepalived pod: container "+container+" killed",
			"All processes of a container of the keepalived pod on the holder of the API VIP are killed; kubelet starts it again.", "keepalived", holder, container))
	}
	list = append(list,
		c.kill("HAProxy pod killed", "All processes of all containers of the HAProxy pod on the holder are killed; kubelet starts them again.",
			"haproxy", holder, names(c.masters[0].pods["haproxy"])...),
		c.kill("API server killed", "The kube-apiserver on the holder is killed; kubelet starts it again.", apiServer, holder, apiServer),
		c.kill("etcd leader killed", "The etcd that leads is killed; kubelet starts it again.", etcd, c.etcdLeader, etcd),
	)
	list = append(list, c.busy(), c.hang(daemons), c.hang(agents), c.addressChanged(), c.drained())
	return append(append(list, c.vipChanged(otherVIP)...), c.rotated(), c.refused(), c.apiAway())
}

func (c *cluster) powerLoss() fault {
	var n *node
	return fault{
		name: "power loss",
		what: "The holder of the API VIP loses its power: all of its processes are killed and its link is cut. It boots again when the API has found out.",
		do: func() {
			n = c.holder(c.vip)
			n.powerOff()
		},
		at:   func() *node { return n },
		over: func() { c.awaitNotReady(n) },
		mend: func() { n.powerOn() },
	}
}

func (c *cluster) kubeletStopped() fault {
	var n *node
	return fault{
		name: "kubelet stopped", stays: true,
		what: "Kubelet on the holder is stopped. It is started again when the API has found out.",
		do: func() {
			n = c.holder(c.vip)
			c.patiently(n.Kubelet.Stop)
		},
		at:   func() *node { return n },
		over: func() { c.awaitNotReady(n) },
		mend: func() {
			c.patiently(func(ctx context.Context) (err error) {
				n.Kubelet, err = n.StartKubelet(ctx, n.config)
				return err
			})
		},
	}
}

func (c *cluster) containerdStopped() fault {
	var n *node
	return fault{
		name: "containerd stopped", stays: true,
		what: "containerd on the holder is stopped: containers go on, and kubelet cannot see them. It is started again when the API has found out.",
		do: func() {
			n = c.holder(c.vip)
			c.patiently(n.Containerd.Stop)
		},
		at:   func() *node { return n },
		over: func() { c.awaitNotReady(n) },
		mend: func() {
			c.patiently(func(ctx context.Context) (err error) {
				n.Containerd, err = n.StartContainerd(ctx, rig.ToolsImage)
				return err
			})
		},
	}
}

// busyFor is the time for which all cores are busy.
const busyFor = time.Minute

// busy keeps all cores busy. Containers have the weight of their requests, and no more.
func (c *cluster) busy() fault {
	return fault{
		name: "all cores busy for " + short(busyFor), stays: true,
		what: "Twice as many busy loops as there are cores, outside of all containers. Nothing is wrong with the cluster.",
		do: func() {
			ctx, cancel := context.WithTimeout(c.t.Context(), busyFor)
			defer cancel()
			var loops sync.WaitGroup
			for range 2 * runtime.NumCPU() {
				loops.Go(func() { exec.CommandContext(ctx, "sh", "-c", "while :; do :; done").Run() })
			}
			loops.Wait()
		},
	}
}

// hang stops processes of pods on the holder. Kubelet detects it by their probes.
func (c *cluster) hang(processes map[string]string) fault {
	var n *node
	before := map[string]corev1.ContainerStatus{}
	each := func(f func(name, pod, container string)) {
		for _, name := range slices.Sorted(maps.Keys(processes)) {
			pod, container, _ := strings.Cut(name, "/")
			f(name, pod, container)
		}
	}
	what := slices.Sorted(maps.Values(processes))
	return fault{
		name: strings.Join(slices.Compact(what), ", ") + " hang",
		what: "Of every container of vipgen's pods on the holder these processes are stopped (SIGSTOP). Kubelet's liveness probes fail, and it starts the containers again.",
		do: func() {
			n = c.holder(c.vip)
			before = n.awaitPods()
			each(func(name, pod, container string) { n.signal(syscall.SIGSTOP, pod, container, processes[name]) })
		},
		over: func() {
			each(func(name, pod, container string) {
				n.replaced(pod, container, before[name])
				c.until("kubelet to say why "+name+" is another one", func() bool {
					out := c.kubectl("get", "events", "-n", podNamespace, "--field-selector", "reason=Killing,involvedObject.name="+pod+"-"+n.Name, "-o", "jsonpath={.items[*].message}")
					return strings.Contains(out, fmt.Sprintf("Container %s failed liveness probe, will be restarted", container))
				})
			})
		},
	}
}

// addressChanged reboots a node at another address.
func (c *cluster) addressChanged() fault {
	var n *node
	return fault{
		name: "address of a node changed",
		what: "A control-plane node that does not hold the API VIP boots with another address. Its member of etcd and its API server are told, as operators do, and then the other API servers, one after the other; its name stays.",
		do: func() {
			holder := c.holder(c.vip)
			n = c.masters[slices.IndexFunc(c.masters, func(n *node) bool { return n != holder })]
			n.powerOff()
			old := n.addr
			n.addr = spare(old)
			c.moveEtcd(n)
			n.startEtcd("existing", c.masters)
			n.startAPI(c.masters)
			c.must(n.PowerOn())
			// In this order: the kernel removes an address along with the first one of its
			// network.
			c.must(n.Run(nil, "ip", "address", "delete", netip.PrefixFrom(old, 24).String(), "dev", n.Link))
			c.must(n.AddAddress(n.Link, netip.PrefixFrom(n.addr, 24)))
			n.boot()
			n.awaitPods()
		},
		over: func() {
			for _, m := range c.masters {
				if m == n {
					continue
				}
				old := m.Await(c.t, "up", apiServer, apiServer, rig.Running)
				m.startAPI(c.masters)
				m.replaced(apiServer, apiServer, old)
				c.until("the API server of "+m.Name, func() bool { return c.serves(m) })
			}
		},
	}
}

// drained restarts a node as for an update.
func (c *cluster) drained() fault {
	var n *node
	return fault{
		name: "drained and restarted",
		what: "The holder is drained; its containers are asked to end (SIGTERM) and given 60 s, as systemd does when a node shuts down; it boots again, and is uncordoned.",
		do: func() {
			n = c.holder(c.vip)
			c.kubectl("drain", n.Name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=60s")
			n.shutDown()
			n.powerOff()
		},
		mend: func() {
			n.powerOn()
			n.awaitPods()
			c.kubectl("uncordon", n.Name)
		},
	}
}

// shutDown stops kubelet and all containers, and waits for their end up to a bound.
func (n *node) shutDown() {
	c := n.cluster
	c.t.Helper()
	var pids []int
	pods := n.allPods()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		for _, container := range names(pods[name]) {
			pids = append(pids, n.processes(name, container, "")...)
		}
	}
	c.patiently(n.Kubelet.Stop)
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGTERM)
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if !slices.ContainsFunc(pids, func(pid int) bool { return syscall.Kill(pid, 0) == nil }) {
			return
		}
	}
}

// vipChanged changes the VIP of the API in two steps (docs/change-a-vip.md). In each, one node
// after the other gets a new cluster.yaml, as the machine config operator writes files, and no
// other file.
func (c *cluster) vipChanged(to netip.Addr) []fault {
	from := c.vip
	group := c.config(v1alpha1.RoleMaster).Spec.Groups[0]
	give := func(keep bool) {
		spec := []string{"vrrp: {virtualRouterIDs: {api: 101}}"}
		if keep {
			spec = append(spec, fmt.Sprintf("additionalAPIVIPs: [{name: old, vips: [%s], virtualRouterID: %d}]", from, group.VirtualRouterID))
		}
		rendered := c.render(to, spec...)
		for _, n := range c.nodes() {
			data, err := os.ReadFile(filepath.Join(rendered, "files", n.role, v1alpha1.ClusterConfigPath))
			c.must(err)
			c.must(n.Write(v1alpha1.ClusterConfigPath, data))
			if n.role != v1alpha1.RoleMaster {
				continue
			}
			c.until("keepalived's configuration of "+n.Name, func() bool {
				conf, err := n.Read(v1alpha1.KeepalivedConf)
				c.must(err)
				return strings.Contains(string(conf), from.String()+"/") == keep && strings.Contains(string(conf), to.String()+"/")
			})
			c.holder(to)
		}
	}
	return []fault{{
		name: fmt.Sprintf("API VIP %s besides %s", to, from), lossless: true,
		what: "Every node gets another cluster.yaml, and nothing else, one after the other. The client uses the old VIP.",
		do:   func() { give(true) },
		mend: func() { c.vip = to },
	}, {
		name: fmt.Sprintf("API VIP %s goes", from), lossless: true,
		what: "Every node gets another cluster.yaml, and nothing else, one after the other. The client uses the new VIP.",
		do:   func() { give(false) },
		over: func() {
			c.until("nobody to hold "+from.String(), func() bool { return !slices.ContainsFunc(c.nodes(), func(n *node) bool { return n.has(from) }) })
		},
	}}
}

// rotated waits until every kubelet has another certificate.
func (c *cluster) rotated() fault {
	current := func(n *node) string {
		target, err := os.Readlink(n.Path("/var/lib/kubelet/pki/kubelet-client-current.pem"))
		c.must(err)
		return target
	}
	return fault{
		name: "certificates rotated", stays: true,
		what: "Every kubelet gets another client certificate, with which the agents on its node ask as well: certificates are valid for " + certificateLifetime + ". Then all API servers are asked to end one after the other, so that every agent connects anew.",
		do: func() {
			before := map[*node]string{}
			for _, n := range c.nodes() {
				before[n] = current(n)
			}
			deadline := time.Now().Add(12 * time.Minute)
			for _, n := range c.nodes() {
				for current(n) == before[n] {
					if time.Now().After(deadline) {
						c.t.Fatalf("kubelet of %s has had no other certificate for 12 minutes", n.Name)
					}
					time.Sleep(time.Second)
				}
			}
		},
		over: func() {
			for _, n := range c.masters {
				old := n.Await(c.t, "up", apiServer, apiServer, rig.Running)
				n.signal(syscall.SIGTERM, apiServer, apiServer, "")
				n.replaced(apiServer, apiServer, old)
				c.until("the API server of "+n.Name, func() bool { return c.serves(n) })
			}
		},
	}
}

// refused withdraws the agents' rights and restores them.
func (c *cluster) refused() fault {
	manifests := c.rendered + "/manifests"
	return fault{
		name: "RBAC removed and restored",
		what: "The rights that vipgen renders for the agents are deleted, and the keepalived pod of the holder is killed, so that its agent starts without them. Then they are there again.",
		do: func() {
			c.kubectl("delete", "--wait=true", "-f", manifests+"/clusterrolebinding.yaml", "-f", manifests+"/clusterrole.yaml", "-f", manifests+"/rolebinding.yaml", "-f", manifests+"/role.yaml")
			n := c.holder(c.vip)
			old := n.Await(c.t, "up", "keepalived", "keepalived", rig.Running)
			n.signal(syscall.SIGKILL, "keepalived", "keepalived", "")
			n.replaced("keepalived", "keepalived", old)
			c.holder(c.vip)
		},
		mend: func() { c.kubectl("apply", "-f", manifests) },
	}
}

// apiOutage is the time for which all API servers are stopped.
const apiOutage = 3 * time.Minute

// apiAway stops all API servers, and restarts an agent meanwhile.
func (c *cluster) apiAway() fault {
	return fault{
		name: "no API for " + apiOutage.String(),
		what: "The manifests of all API servers are taken away for " + apiOutage.String() + ", and the keepalived pod of the holder is killed meanwhile (hard case 19).",
		do: func() {
			for _, n := range c.masters {
				n.endStatic(apiServer)
			}
			for _, n := range c.masters {
				c.until("the API server of "+n.Name+" to end", func() bool { return !c.serves(n) })
			}
			away := time.Now()
			n := c.holder(c.vip)
			old := n.Await(c.t, "up", "keepalived", "keepalived", rig.Running)
			n.signal(syscall.SIGKILL, "keepalived", "keepalived", "")
			n.replaced("keepalived", "keepalived", old)
			for time.Since(away) < apiOutage {
				c.holder(c.vip)
				c.holder(ingressVIP)
				time.Sleep(time.Second)
			}
			for _, n := range c.masters {
				n.startAPI(c.masters)
			}
		},
	}
}
