package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	idleSettle = 20 * time.Second // after which a cluster counts as idle
	idleWindow = 30 * time.Second // of the measurement
)

// BenchmarkIdle prints the share of a core that each process of an idle cluster uses: on the
// holder of the API VIP, on another control-plane node, and on a worker with its own load
// balancer. VIPGEN_IDLE_BASE names another vipgen-agent to be measured at the same time, under
// the same load of the machine. It never fails because of a measured value.
func BenchmarkIdle(b *testing.B) {
	testkit.Live(b)
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	agents := []string{testkit.Agent(b)}
	if base := os.Getenv("VIPGEN_IDLE_BASE"); base != "" {
		agents = append([]string{base}, agents...)
	}
	var labs [][]idleProcess
	for _, agent := range agents {
		labs = append(labs, idleNodes(b, ctx, agent))
	}
	time.Sleep(idleSettle)
	before, began := onCores(labs), time.Now()
	time.Sleep(idleWindow)
	after, length := onCores(labs), time.Since(began)

	shares := map[string][]float64{} // by node and process, for each agent
	for i, processes := range labs {
		for _, p := range processes {
			for _, name := range []string{p.node + " " + p.name, p.node + " (all)"} {
				if shares[name] == nil {
					shares[name] = make([]float64, len(labs))
				}
				shares[name][i] += 100 * (after[p.pid] - before[p.pid]).Seconds() / length.Seconds()
			}
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	// Go prints only the first lines of a log.
	fmt.Printf("%% of a core with %q, over %v, load of the machine %s", agents, length.Round(time.Second), load)
	for _, name := range slices.Sorted(maps.Keys(shares)) {
		fmt.Printf("%50s %6.2f\n", name, shares[name])
	}
	b.ReportMetric(shares["holder (all)"][len(labs)-1], "%core-holder")
	b.ReportMetric(0, "ns/op")
}

// idleProcess is a process of a container, with both names, on a kind of node.
type idleProcess struct {
	pid        int
	node, name string
}

// idleNodes builds a cluster with an agent, and returns the processes of three kinds of its
// nodes once each is healthy.
func idleNodes(b *testing.B, ctx context.Context, agent string) (out []idleProcess) {
	b.Helper()
	r := load(b, demo)
	plan, err := NewPlan(r, PlanOptions{Counts: map[string]int{"worker": 1}})
	testkit.Must(b, err)
	p := programs(b)
	p.Agent = agent
	c := newLabOf(b, ctx, r, plan, p)
	holder, err := c.Holder(ctx, c.VIPs(v1alpha1.GroupAPI)[0])
	testkit.Must(b, err)
	kinds := map[string]*Node{"holder": holder}
	for _, n := range c.Nodes() {
		if n.Role != v1alpha1.RoleMaster {
			kinds["worker"] = n
		} else if n != holder {
			kinds["control plane"] = n
		}
	}
	for kind, n := range kinds {
		for _, pod := range n.Kubelet.Pods() {
			for _, found := range pod.Containers {
				running, err := n.Running(ctx, pod.Name, found.Name)
				testkit.Must(b, err)
				list, err := running.Processes()
				testkit.Must(b, err)
				for _, p := range list {
					out = append(out, idleProcess{p.PID, kind, fmt.Sprintf("%s/%s: %s", pod.Name, found.Name, p.Name)})
				}
			}
		}
	}
	return out
}

// onCores returns the CPU time of each process since its start, with all of its threads:
// clock_getcpuclockid(3). Ended processes are left out.
func onCores(labs [][]idleProcess) map[int]time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED, of a process
	out := map[int]time.Duration{}
	for _, p := range slices.Concat(labs...) {
		var t unix.Timespec
		if err := unix.ClockGettime(int32(^p.pid<<3|scheduler), &t); err == nil {
			out[p.pid] = time.Duration(t.Nano())
		}
	}
	return out
}
