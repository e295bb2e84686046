package lab

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"
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
	var labs []map[string][]idleProcess
	for _, agent := range agents {
		labs = append(labs, idleNodes(b, ctx, agent))
	}
	time.Sleep(idleSettle)
	var before []map[int]time.Duration
	for _, nodes := range labs {
		before = append(before, onCores(nodes))
	}
	began := time.Now()
	time.Sleep(idleWindow)
	var after []map[int]time.Duration
	for _, nodes := range labs {
		after = append(after, onCores(nodes))
	}
	length := time.Since(began)

	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%% of a core\t")
	for _, agent := range agents {
		fmt.Fprintf(w, "%s\t", filepath.Base(filepath.Dir(agent)))
	}
	fmt.Fprintln(w)
	shares := make([]map[string]float64, len(labs))
	var names []string
	for i, nodes := range labs {
		shares[i] = map[string]float64{}
		for node, processes := range nodes {
			for _, p := range processes {
				share := 100 * (after[i][p.pid] - before[i][p.pid]).Seconds() / length.Seconds()
				shares[i][node+" "+p.name] += share
				shares[i][node+" (all)"] += share
			}
		}
		for name := range shares[i] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		fmt.Fprintf(w, "%s\t", name)
		for i := range labs {
			fmt.Fprintf(w, "%.2f\t", shares[i][name])
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	load, _ := os.ReadFile("/proc/loadavg")
	// Go prints only the first lines of a log.
	fmt.Printf("over %v, load of the machine %s\n%s", length.Round(time.Second), bytes.TrimSpace(load), out.String())
	b.ReportMetric(shares[len(shares)-1]["holder (all)"], "%core-holder")
	b.ReportMetric(0, "ns/op")
}

// idleProcess is a process of a container, with both names.
type idleProcess struct {
	pid  int
	name string
}

// idleNodes builds a cluster with an agent, and returns the processes of three kinds of its
// nodes once each is healthy.
func idleNodes(b *testing.B, ctx context.Context, agent string) map[string][]idleProcess {
	b.Helper()
	r := load(b, demo)
	plan, err := NewPlan(r, PlanOptions{Counts: map[string]int{"worker": 1}})
	testkit.Must(b, err)
	p := programs(b)
	p.Agent = agent
	c := newLabOf(b, ctx, r, plan, p)
	holder, err := c.Holder(ctx, c.VIPs(v1alpha1.GroupAPI)[0])
	testkit.Must(b, err)
	out := map[string][]idleProcess{}
	for _, n := range c.Nodes() {
		kind := "control plane"
		switch {
		case n == holder:
			kind = "holder"
		case n.Role != v1alpha1.RoleMaster:
			kind = "worker"
		case out[kind] != nil:
			continue
		}
		for _, pod := range n.Kubelet.Pods() {
			for _, found := range pod.Containers {
				running, err := n.Running(ctx, pod.Name, found.Name)
				testkit.Must(b, err)
				list, err := running.Processes()
				testkit.Must(b, err)
				for _, p := range list {
					out[kind] = append(out[kind], idleProcess{p.PID, fmt.Sprintf("%s/%s: %s", pod.Name, found.Name, p.Name)})
				}
			}
		}
	}
	return out
}

// onCores returns the CPU time of each process since its start, with all of its threads:
// clock_getcpuclockid(3). Ended processes are left out.
func onCores(nodes map[string][]idleProcess) map[int]time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED, of a process
	out := map[int]time.Duration{}
	for _, processes := range nodes {
		for _, p := range processes {
			var t unix.Timespec
			if err := unix.ClockGettime(int32(^p.pid<<3|scheduler), &t); err == nil {
				out[p.pid] = time.Duration(t.Nano())
			}
		}
	}
	return out
}
