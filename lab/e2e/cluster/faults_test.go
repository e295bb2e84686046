package cluster

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

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
func (c *cluster) kill(name, pod string, on func() *node, containers ...string) fault {
	var n *node
	old := map[string]corev1.ContainerStatus{}
	return fault{
		name: name,
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
	list := []fault{c.powerLoss(),
		c.stopped("kubelet", func(ctx context.Context, n *node) error { return n.Kubelet.Stop(ctx) }, func(ctx context.Context, n *node) (err error) {
			n.Kubelet, err = n.StartKubelet(ctx, n.config)
			return err
		}),
		c.stopped("containerd", func(ctx context.Context, n *node) error { return n.Containerd.Stop(ctx) }, func(ctx context.Context, n *node) (err error) {
			n.Containerd, err = n.StartContainerd(ctx, rig.ToolsImage)
			return err
		}),
	}
	for _, container := range names(c.masters[0].pods["keepalived"]) {
		list = append(list, c.kill("keepalived pod: container "+container+" killed", "keepalived", holder, container))
	}
	list = append(list,
		c.kill("HAProxy pod killed", "haproxy", holder, names(c.masters[0].pods["haproxy"])...),
		c.kill("API server killed", apiServer, holder, apiServer),
		c.kill("etcd leader killed", etcd, c.etcdLeader, etcd),
	)
	return append(list, c.busy(), c.hang(daemons), c.hang(agents), c.drained(), c.rotated())
}

func (c *cluster) powerLoss() fault {
	var n *node
	return fault{
		name: "power loss",
		do: func() {
			n = c.holder(c.vip)
			n.powerOff()
		},
		at:   func() *node { return n },
		over: func() { c.awaitNotReady(n) },
		mend: func() { n.powerOn() },
	}
}

// stopped stops a service of the holder until the API reports the node as not ready.
func (c *cluster) stopped(service string, stop, start func(context.Context, *node) error) fault {
	var n *node
	return fault{
		name: service + " stopped", stays: true,
		do: func() {
			n = c.holder(c.vip)
			c.patiently(func(ctx context.Context) error { return stop(ctx, n) })
		},
		at:   func() *node { return n },
		over: func() { c.awaitNotReady(n) },
		mend: func() { c.patiently(func(ctx context.Context) error { return start(ctx, n) }) },
	}
}

// busyFor is the time for which all cores are busy.
const busyFor = time.Minute

// busy keeps all cores busy, with twice as many loops. Containers have the weight of their requests, and no more.
func (c *cluster) busy() fault {
	return fault{
		name: "all cores busy for " + short(busyFor), stays: true,
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

// drained restarts a node as for an update.
func (c *cluster) drained() fault {
	var n *node
	return fault{
		name: "drained and restarted",
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

// rotated waits until every kubelet has another certificate, and restarts all API servers, so that every
// agent connects with it.
func (c *cluster) rotated() fault {
	current := func(n *node) string {
		target, err := os.Readlink(n.Path("/var/lib/kubelet/pki/kubelet-client-current.pem"))
		c.must(err)
		return target
	}
	return fault{
		name: "certificates rotated", stays: true,
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
