package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/lab/e2e/machine"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// measureIdle waits and returns a table of the usage of vipgen's containers.
func (c *cluster) measureIdle(long time.Duration) string {
	c.t.Helper()
	c.log("nothing happens for %s", long)
	c.settle()
	before, began := c.usage(), time.Now()
	time.Sleep(long)
	after, took := c.usage(), time.Since(began)
	var b strings.Builder
	fmt.Fprintf(&b, "## What containers use\n\nOver %s in which nothing happened: time on cores as a share of one, and memory of their own at the end.\n\n", long)
	b.WriteString("| node | pod/container | CPU | memory |\n|---|---|---|---|\n")
	for _, key := range slices.Sorted(maps.Keys(after)) {
		node, container, _ := strings.Cut(key, " ")
		cpu := after[key].CPU - before[key].CPU
		fmt.Fprintf(&b, "| %s | %s | %.2f %% | %.1f MiB |\n", node, container, 100*cpu.Seconds()/took.Seconds(), float64(after[key].Memory)/(1<<20))
	}
	return b.String()
}

// usage returns the usage of every container, by node and pod/container.
func (c *cluster) usage() map[string]machine.Usage {
	c.t.Helper()
	out := map[string]machine.Usage{}
	for _, n := range c.nodes() {
		for name, s := range n.awaitPods() {
			u, err := n.Usage(rig.ContainerID(s))
			c.must(err)
			out[n.Name+" "+name] = u
		}
	}
	return out
}
