package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Sizes of the cluster, in nodes.
const (
	small = 10
	large = 2000
)

const (
	starts  = 5                // of each job
	changes = 5                // of an address
	window  = 20 * time.Second // during which an idle agent is observed
	settle  = 10 * time.Second // after which it counts as idle
	// apart is the time between two changes: the jobs leave 3 s.
	apart = 4 * time.Second
	// beatEvery is how often a kubelet reports a status that has not changed.
	beatEvery = 5 * time.Minute
)

// measurement is a run with its results.
type measurement struct {
	*testing.B
	program string
	api     *daemon.APIServer
	node    *node
	list    []*job
	moves   int // changes of a node's address
	rows    []row
}

// BenchmarkAgent compares the agent's footprint with its targets, on a node of a real API
// server with ten nodes and then 2,000, and prints one table. It fails when a job does not
// work, never because of a measured value.
func BenchmarkAgent(b *testing.B) {
	m := &measurement{B: b, program: build(b)}
	m.size()
	m.api = daemon.NewAPIServer(b, domain)
	m.node = newNode(b, m.program, m.api)
	m.list = m.node.jobs()

	addNodes(b, m.api, 0, small)
	m.startAll()
	m.idle(small, false)
	m.change(small)
	m.restart(small)

	addNodes(b, m.api, small, large)
	m.killAll()
	m.startAll()
	m.idle(large, false)
	m.idle(large, true)
	m.change(large)
	m.restart(large)

	m.print()
}

// build builds the agent as it is shipped.
func build(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "vipgen-agent")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	testkit.Run(b, build)
	return program
}

func (m *measurement) size() {
	m.Helper()
	info, err := os.Stat(m.program)
	testkit.Must(m, err)
	kib := int(info.Size() / 1024)
	m.add("static binary", mib(kib), "30 MiB", kib <= 30<<10, "")
}

func (m *measurement) startAll() {
	m.Helper()
	for _, j := range m.list {
		j.start()
	}
	for _, j := range m.list {
		j.await(j.name+" to have its configuration in place", j.up)
	}
}

func (m *measurement) killAll() {
	m.Helper()
	for _, j := range m.list {
		j.kill()
	}
}

// idle observes memory and CPU time while nothing changes except, optionally, the heartbeats of
// kubelets.
func (m *measurement) idle(nodes int, heartbeats bool) {
	m.Helper()
	time.Sleep(settle)
	before := map[*job]time.Duration{}
	for _, j := range m.list {
		before[j] = cpuOf(m.B, j.pid())
	}
	began := time.Now()
	for beats := 0; time.Since(began) < window; time.Sleep(100 * time.Millisecond) {
		for ; heartbeats && time.Duration(beats)*beatEvery/time.Duration(nodes) < time.Since(began); beats++ {
			m.patch(controlPlane+beats, map[string]any{"conditions": conditions(time.Now())})
		}
	}
	what := fmt.Sprintf("%d nodes", nodes)
	if heartbeats {
		what += " with heartbeats"
	}
	for _, j := range m.list {
		m.core(j, what, cpuOf(m.B, j.pid())-before[j], time.Since(began))
	}
	for _, j := range m.list {
		m.resident(j, what, map[int]int{small: 25, large: 40}[nodes])
	}
}

func (m *measurement) core(j *job, what string, used, of time.Duration) {
	share := 100 * used.Seconds() / of.Seconds()
	m.add(j.name+": of a core, "+what, fmt.Sprintf("%.2f %%", share), "0.20 %", share < 0.2, fmt.Sprintf("over %v", of.Round(time.Second)))
}

func (m *measurement) resident(j *job, what string, aim int) {
	m.Helper()
	now := memoryOf(m.B, j.pid())
	m.add(j.name+": resident, "+what, mib(now.rss), fmt.Sprintf("%d MiB", aim), now.rss <= aim<<10,
		fmt.Sprintf("anonymous %s, of the binary %s; once %s", mib(now.anonymous), mib(now.rss-now.anonymous), mib(now.peak)))
}

// restart restarts every job repeatedly, with its files on disk.
func (m *measurement) restart(nodes int) {
	m.Helper()
	for _, j := range m.list {
		var took []time.Duration
		for range starts {
			j.kill()
			j.start()
			j.await(j.name+" to have its configuration in place", j.up)
			took = append(took, time.Since(j.began))
		}
		m.times(fmt.Sprintf("%s: first configuration, %d nodes", j.name, nodes), took, 200*time.Millisecond+j.protocol)
	}
}

// change repeatedly changes the address of a control-plane node, and measures from the API
// server's answer until the jobs' files have the address and their daemons were reloaded.
func (m *measurement) change(nodes int) {
	m.Helper()
	const moved = 1
	took := map[*job][]time.Duration{}
	for range changes {
		m.moves++
		address := fmt.Sprintf("192.168.111.%d", 100+m.moves)
		time.Sleep(apart)
		before := map[*job]int{}
		for _, j := range m.list {
			before[j] = j.applied()
		}
		m.patch(moved, map[string]any{"addresses": addresses(moved, address)})
		began := time.Now()
		waiting := slices.DeleteFunc(slices.Clone(m.list), func(j *job) bool { return j.names == "" })
		m.node.await("every job to follow", func() bool {
			waiting = slices.DeleteFunc(waiting, func(j *job) bool {
				// CoreDNS watches its hosts file.
				done := j.contains(j.names, address) && (j.names != j.conf || j.applied() > before[j])
				if done {
					took[j] = append(took[j], time.Since(began))
				}
				return done
			})
			return len(waiting) == 0
		})
	}
	for _, j := range m.list {
		if j.names != "" {
			m.times(fmt.Sprintf("%s: change of peers, %d nodes", j.name, nodes), took[j], time.Second)
		}
	}
}

// patch changes the status of a node as its kubelet does.
func (m *measurement) patch(i int, status map[string]any) {
	m.Helper()
	data, err := json.Marshal(map[string]any{"status": status})
	testkit.Must(m, err)
	m.api.Patch("/api/v1/nodes/"+nodeName(i)+"/status", data)
}

// contains reports whether a file of the node has a word.
func (n *node) contains(path, word string) bool {
	data, _ := os.ReadFile(n.Path(path))
	return slices.ContainsFunc([]string{" ", ":", "\n"}, func(end string) bool { return bytes.Contains(data, []byte(word+end)) })
}

// row is a line of the table.
type row struct{ what, measured, aim, verdict, notes string }

func (m *measurement) add(what, measured, aim string, met bool, notes string) {
	verdict := "met"
	if !met {
		verdict = "MISSED"
	}
	m.rows = append(m.rows, row{what, measured, aim, verdict, notes})
}

// times adds a row of durations, the longest of which must be within the target.
func (m *measurement) times(what string, took []time.Duration, aim time.Duration) {
	slices.Sort(took)
	median, worst := took[len(took)/2], took[len(took)-1]
	m.add(what, ms(median), ms(aim), worst < aim, fmt.Sprintf("median; worst of %d: %s", len(took), ms(worst)))
}

func (m *measurement) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nwhat\tmeasured\taim\t\t")
	for _, r := range m.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.aim, r.verdict, r.notes)
	}
	w.Flush()
}

func mib(kib int) string { return fmt.Sprintf("%.1f MiB", float64(kib)/1024) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
