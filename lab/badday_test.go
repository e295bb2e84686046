package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
	"github.com/vipgen/vipgen/templates/manifest"
)

// badDay is a fault of the holder of the API VIP. do begins it and returns a function that ends
// it.
type badDay struct {
	name string
	// before prepares the cluster, without a client; it may be nil.
	before func(*testing.T, *cluster, *node)
	do     func(*testing.T, *cluster, *node) (heal func())
	// lasts is the duration of the fault; lost bounds the requests without an answer.
	lasts time.Duration
	lost  int
}

// badDays lists the faults; docs/hard-cases.md has the figures.
var badDays = []badDay{
	{name: "HalfAnAPIServer", do: halfAPI, lasts: 12 * time.Second, lost: inFlight},
	{name: "EtcdReadOnly", do: etcdReadOnly, lasts: 8 * time.Second},
	{name: "OOMAgent", do: oom(manifest.Keepalived, "vipgen-agent"), lasts: 8 * time.Second, lost: inFlight},
	{name: "OOMKeepalived", do: oom(manifest.Keepalived, "keepalived"), lasts: 8 * time.Second, lost: inFlight},
	{name: "OOMHAProxy", do: oom(manifest.HAProxy, "haproxy"), lasts: 8 * time.Second, lost: 4 * inFlight},
	{name: "NoPIDs", do: noPIDs, lasts: 35 * time.Second, lost: 4 * inFlight},
	{name: "ReadOnlyEtc", do: readOnlyEtc, lasts: 12 * time.Second, lost: inFlight},
	{name: "ManyGroups", do: clusterFile(manyGroups), lasts: 12 * time.Second},
	{name: "LargeEvents", do: eventsFile(largeEvents), lasts: 10 * time.Second, lost: inFlight},
	{name: "EventsFIFO", do: eventsFile(fifo), lasts: 10 * time.Second, lost: inFlight},
	{name: "ServingCertificatesExpired", do: servingExpired, lasts: 20 * time.Second, lost: inFlight},
	{name: "ClientCertificatesExpired", do: clientExpired, lasts: 20 * time.Second, lost: inFlight},
	{name: "HolderAgentStopped", do: agentStopped(false), lasts: time.Minute, lost: inFlight},
	{name: "BackupAgentStopped", do: agentStopped(true), lasts: time.Minute},
	{name: "NoInodes", before: fewInodes, do: noInodes, lasts: 30 * time.Second, lost: 2 * inFlight},
	{name: "OtherCluster", do: clusterFile(otherCluster), lasts: 15 * time.Second, lost: inFlight},
	{name: "ARPSpoofing", do: arpSpoofing, lasts: 20 * time.Second, lost: inFlight},
	{name: "SlowStrangers", do: slowStrangers, lasts: 40 * time.Second},
}

// TestBadDay injects the faults of a bad day into the holder of the API VIP, one after another,
// under a client's load.
func TestBadDay(t *testing.T) {
	testkit.Variant(t)
	t.Parallel()
	runSteps(t, lists.Map(badDays, func(day badDay) clusterStep { return clusterStep{day.name, day.run} }))
}

func (day *badDay) run(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	if day.before != nil {
		day.before(t, c, n)
	}
	p := c.asks(t, api, probe.LiveEvery, probe.Target{URL: "https://192.0.2.5:6443/readyz", Timeout: 2 * time.Second})
	w := c.watchVIPs(time.Now())
	heal := day.do(t, c, n)
	time.Sleep(day.lasts) // duration of the fault
	moved := c.holders(api)
	heal()
	awaitWell(t, c.Cluster)
	next := c.holder(t, api)
	p.answers(t, 20)
	timeline, err := w.End()
	c.must(err)
	r := p.End()
	two := timeline.In(watch.Addresses).SplitBrain(0)
	show(t, day.name+" on "+n.Name, fmt.Sprintf("lost %d of %d, longest time between two answers %v; split brain %v; held by %v, then by %s",
		r.Lost(), len(r.Requests), r.Gap().Round(10*time.Millisecond), two.Round(10*time.Millisecond), lists.Map(moved, func(n *node) string { return n.Name }), next.Name))
	p.expect(t, day.lost)
	testkit.Promise(t, "split brain", two, time.Second, 3*time.Second, p.machine.End())
}

// halfAPI replaces an API server by a server that answers its health checks alone.
func halfAPI(t *testing.T, c *cluster, n *node) func() {
	restore, err := n.HalfAPI()
	c.must(err)
	return func() { c.must(restore(t.Context())) }
}

// metric returns the line of a metric of the keepalived job.
func (n *node) metric(name string) string {
	for line := range strings.Lines(n.metrics(v1alpha1.DefaultPorts.KeepalivedMonitor)) {
		if strings.HasPrefix(line, name) {
			return strings.TrimSpace(line)
		}
	}
	return "no " + name
}

// etcdReadOnly has etcd refuse writes.
func etcdReadOnly(t *testing.T, c *cluster, _ *node) func() {
	c.must(c.API.RefuseWrites(t.Context(), true))
	t.Cleanup(func() {
		if t.Failed() {
			_ = c.API.RefuseWrites(context.Background(), false)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := c.API.Create(ctx, "/api/v1/namespaces", []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bad-day"}}`))
	if err == nil {
		t.Error("etcd takes an object")
	}
	return func() { c.must(c.API.RefuseWrites(t.Context(), false)) }
}

func number(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(t, err)
	v, err := strconv.Atoi(strings.TrimSpace(string(data)))
	testkit.Must(t, err)
	return v
}

// oom makes the kernel kill the processes of a name in a container for lack of memory.
func oom(podName, name string) func(*testing.T, *cluster, *node) func() {
	return func(t *testing.T, c *cluster, n *node) func() {
		group, err := n.ControlGroup(t.Context(), podName, podName, "memory")
		c.must(err)
		if group == "" {
			testkit.CannotRun(t, "no memory controller of version 1")
		}
		list, err := n.running(podName, podName).Processes()
		c.must(err)
		for _, p := range list {
			adjust := "0"
			if p.Name == name {
				adjust = "1000"
			}
			c.must(os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID), []byte(adjust), 0))
		}
		limit := number(t, group+"/memory.usage_in_bytes") + 8<<20
		c.must(os.WriteFile(group+"/memory.limit_in_bytes", []byte(strconv.Itoa(limit)), 0))
		// A leak in the container, which ends before the processes that are to be killed.
		hog := exec.Command("bash", "-c", "echo $$ > "+group+"/cgroup.procs; echo 999 > /proc/self/oom_score_adj; head -c 200M /dev/zero | tail")
		c.must(hog.Start())
		_ = hog.Wait()
		testkit.AwaitWithin(t, 10*time.Second, "the kernel to kill a process "+name, func() bool {
			return slices.ContainsFunc(list, func(p container.Process) bool { return p.Name == name && syscall.Kill(p.PID, 0) == syscall.ESRCH })
		})
		_ = os.WriteFile(group+"/memory.limit_in_bytes", []byte("-1"), 0) // gone with its container, if that ended
		return func() {}
	}
}

// noPIDs keeps the containers of keepalived and HAProxy from starting processes and threads.
func noPIDs(t *testing.T, c *cluster, n *node) func() {
	var lifts []func()
	for _, name := range []string{manifest.Keepalived, manifest.HAProxy} {
		lift, err := n.NoProcesses(t.Context(), name, name)
		c.must(err)
		if lift == nil {
			testkit.CannotRun(t, "no pids controller of version 1")
		}
		lifts = append(lifts, lift)
	}
	return func() {
		for _, lift := range lifts {
			lift()
		}
	}
}

// readOnlyEtc makes the jobs' files below /etc read-only, and gives them something to write.
func readOnlyEtc(t *testing.T, c *cluster, n *node) func() {
	var restores []func() error
	for _, name := range []string{manifest.Keepalived, manifest.HAProxy, manifest.CoreDNS} {
		restore, err := n.ReadOnly(t.Context(), name, name, "/etc/"+name)
		c.must(err)
		restores = append(restores, restore)
	}
	const path = "/api/v1/nodes"
	c.create(path, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"master-9","labels":{"node-role.kubernetes.io/master":"","node-role.kubernetes.io/control-plane":""}}}`)
	c.patch(path+"/master-9/status", `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.19"},{"type":"InternalIP","address":"2001:db8::19"}]}}`)
	return func() {
		for _, restore := range restores {
			c.must(restore())
		}
		testkit.Await(t, "the new peer to be written", func() bool { return strings.Contains(n.read(v1alpha1.KeepalivedConf), "192.0.2.19") })
		c.remove(path + "/master-9")
	}
}

// clusterFile replaces cluster.yaml on a node.
func clusterFile(change func(*testing.T, string) string) func(*testing.T, *cluster, *node) func() {
	return func(t *testing.T, c *cluster, n *node) func() {
		whole := n.read(v1alpha1.ClusterConfigPath)
		n.write(v1alpha1.ClusterConfigPath, change(t, whole))
		return func() { n.write(v1alpha1.ClusterConfigPath, whole) }
	}
}

func manyGroups(t *testing.T, text string) string {
	data, err := ManyGroups([]byte(text))
	testkit.Must(t, err)
	return string(data)
}

// eventsFile replaces the record of events, and kills the agent, which reads it when it starts.
func eventsFile(put func(path string) error) func(*testing.T, *cluster, *node) func() {
	return func(t *testing.T, c *cluster, n *node) func() {
		path := n.Path("/etc/keepalived/" + events.FileName)
		c.must(os.Remove(path))
		c.must(put(path))
		c.must(n.container(manifest.Keepalived, "keepalived").Signal(syscall.SIGKILL))
		return func() {
			info, err := os.Lstat(path)
			c.must(err)
			if !info.Mode().IsRegular() { // the agent reports it, and keeps events in memory
				c.must(os.Remove(path))
			} else if info.Size() > 1<<20 {
				t.Error("it is still as large")
			}
		}
	}
}

func largeEvents(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	return os.Truncate(path, 1<<30)
}

func fifo(path string) error { return unix.Mkfifo(path, 0o644) }
