package lab

import (
	"context"
	"net/netip"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/pod"
)

// node is a node of the cluster whose methods fail the running test.
type node struct {
	*Node
	cluster *cluster
}

// patient bounds what takes seconds on an idle machine.
func (n *node) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.cluster.t.Context(), testkit.Patience)
}

// must fails the test if a step fails.
func (n *node) must(do func(context.Context) error) {
	n.cluster.t.Helper()
	ctx, cancel := n.patient()
	defer cancel()
	n.cluster.must(do(ctx))
}

// powerOff is a power loss.
func (n *node) powerOff() {
	n.cluster.t.Helper()
	n.cluster.must(n.Kill())
}

func (n *node) powerOn() {
	n.cluster.t.Helper()
	n.must(n.Heal)
}

// startAPI starts the node's API server and returns when it is ready.
func (n *node) startAPI() {
	n.cluster.t.Helper()
	n.cluster.must(n.API.Launch())
	n.must(n.API.AwaitReady)
}

func (n *node) killAPI() {
	n.cluster.t.Helper()
	n.cluster.must(n.API.Kill())
}

func (n *node) write(path, text string) {
	n.cluster.t.Helper()
	n.cluster.must(n.Write(path, []byte(text)))
}

func (n *node) read(path string) string {
	n.cluster.t.Helper()
	data, err := n.Read(path)
	n.cluster.must(err)
	return string(data)
}

func (n *node) ip(args ...string) {
	n.cluster.t.Helper()
	n.cluster.must(n.Run(nil, "ip", args...))
}

// removePod removes a manifest, returns when the pod is gone, and a function that restores it.
func (n *node) removePod(name string) (restore func()) {
	n.cluster.t.Helper()
	var put func() error
	n.must(func(ctx context.Context) (err error) {
		put, err = n.RemovePod(ctx, name)
		return err
	})
	return func() { n.cluster.must(put()) }
}

// container returns a container of a pod, once it runs.
func (n *node) container(podName, name string) (c *pod.Container) {
	n.cluster.t.Helper()
	n.must(func(ctx context.Context) (err error) {
		c, err = n.Container(ctx, podName, name)
		return err
	})
	return c
}

func (n *node) running(podName, name string) (c *container.Container) {
	n.cluster.t.Helper()
	n.must(func(ctx context.Context) (err error) {
		c, err = n.Running(ctx, podName, name)
		return err
	})
	return c
}

// exec runs a program in a container, which must succeed.
func (n *node) exec(podName, name string, args ...string) string {
	n.cluster.t.Helper()
	out, code, err := n.container(podName, name).Exec(n.cluster.t.Context(), args...)
	if err != nil || code != 0 {
		n.cluster.t.Errorf("%s in %s on %s: exit code %d, %v\n%s", args, name, n.Name, code, err, out)
	}
	return out
}

// published returns the published state of a job of the node; false if it does not run.
func published[T state.Job](n *node) (v T, alive bool) {
	n.cluster.t.Helper()
	p, err := Published[T](n.Node)
	n.cluster.must(err)
	if p == nil {
		return v, false
	}
	return *p, true
}

// holds reports whether the node has a VIP.
func (n *node) holds(vip netip.Addr) bool {
	n.cluster.t.Helper()
	has, err := n.Has(vip)
	n.cluster.must(err)
	return has
}
