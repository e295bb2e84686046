package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/apitest"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
	"github.com/vipgen/vipgen/templates/manifest"
)

const (
	small, large = 10, 2000 // nodes of the cluster
	controlPlane = 3        // of them, from master-0, the measured node

	starts  = 5                // of each job
	changes = 5                // of an address
	apart   = 4 * time.Second  // between two of them: the jobs leave 3 s
	window  = 20 * time.Second // during which an idle agent is observed
	settle  = 10 * time.Second // after which it counts as idle
	// beatEvery is how often a kubelet reports a status that has not changed.
	beatEvery = 5 * time.Minute

	// rendered is a golden case: what vipgen renders for the cluster.
	rendered = "../../golden/cases/baremetal-usermanaged/expected/files/"
)

// BenchmarkAgent compares the agent's footprint with its targets, on a node of a cluster with
// ten nodes and then 2,000, and prints one table. It fails when a job does not work, never
// because of a measured value.
func BenchmarkAgent(b *testing.B) {
	m := newMeasurement(b)
	info, err := os.Stat(testkit.Agent(b))
	testkit.Must(b, err)
	m.row("static binary", mib(info.Size()), "30 MiB", info.Size() <= 30<<20, "")
	for _, nodes := range []int{small, large} {
		for _, j := range m.jobs {
			m.kill(j)
		}
		for ; m.nodes < nodes; m.nodes++ {
			m.api.Create(apitest.NodesPath, nodeObject(m.nodes))
		}
		for _, j := range m.jobs {
			m.start(j)
		}
		for _, j := range m.jobs {
			m.awaitUp(j)
		}
		m.idle(fmt.Sprint(nodes, " nodes"), map[int]int64{small: 25, large: 40}[nodes], 0)
		if nodes == large {
			m.idle("2000 nodes with heartbeats", 40, beatEvery/large)
		}
		m.change()
		m.restart()
	}
	m.table.Flush()
}

// measurement is a node of the control plane with everything that the agent's jobs watch.
type measurement struct {
	*testing.B
	host  *daemon.Host
	api   *apitest.API
	nodes int // of the API
	moves int // changes of a node's address
	jobs  []*job
	table *tabwriter.Writer
}

func newMeasurement(b *testing.B) *measurement {
	b.Helper()
	testkit.Live(b)
	host := daemon.NewHost(b, daemon.AddNode(b, daemon.NewNetwork(b), nodeName(0), nodeAddress(0)+"/24"))
	host.Bind(testkit.Agent(b), "/vipgen/vipgen-agent")
	host.Bind(testkit.Tool(b, "coredns"), "/coredns")
	for _, path := range []string{v1alpha1.ClusterConfigPath, v1alpha1.ModeFile} {
		host.Write(path, testkit.ReadFile(b, rendered+"every-pool"+path))
	}
	for path, data := range map[string]string{
		v1alpha1.KeepalivedTemplate:       keepalived.Template,
		v1alpha1.HAProxyTemplate:          haproxy.Template,
		v1alpha1.CorefileTemplate:         coredns.Template,
		v1alpha1.HostsTemplate:            coredns.HostsTemplate,
		"/run/NetworkManager/resolv.conf": "nameserver 192.168.111.1\n",
		"/etc/hosts":                      "127.0.0.1 localhost\n",
	} {
		host.Write(path, []byte(data))
	}
	sockets := host.Path(filepath.Dir(v1alpha1.HAProxySocket)) // in the pod any user may write there, such as HAProxy's
	testkit.Must(b, os.MkdirAll(sockets, 0o755))
	testkit.Must(b, os.Chmod(sockets, 0o777))
	m := &measurement{B: b, host: host, api: apitest.NewRealAPI(b, host), table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0), jobs: []*job{
		{name: "keepalived", pod: "keepalived", conf: v1alpha1.KeepalivedConf, names: v1alpha1.KeepalivedConf, up: "daemon started"},
		{name: "haproxy", pod: "haproxy", conf: v1alpha1.HAProxyConf, names: v1alpha1.HAProxyConf, up: "daemon started"},
		{name: "firewall", pod: "haproxy", up: "redirect placed"},
		{name: "coredns", pod: "coredns", conf: v1alpha1.Corefile, names: v1alpha1.HostsFile, up: "daemon started"},
		// RFC 6762 section 8.1: up to 250 ms at random, then three probes.
		{name: "mdns", pod: "mdns-publisher", up: "announced=true", protocol: time.Second},
	}}
	fmt.Fprintln(m.table, "\nwhat\tmeasured\taim\t\t")
	testkit.Must(b, m.api.Serve(host, nodeName(0)).AwaitReady(b.Context()))
	for name, collection := range map[string]string{manifest.ClusterRole: "clusterroles", manifest.ClusterRoleBinding: "clusterrolebindings"} {
		data, err := manifest.Render(name, manifest.Params{})
		testkit.Must(b, err)
		role := apitest.Object{}
		testkit.Must(b, yaml.Unmarshal(data, &role))
		m.api.Create("/apis/rbac.authorization.k8s.io/v1/"+collection, role)
	}
	m.serveConfig()
	return m
}

// serveConfig starts a machine config server, which the node checks.
func (m *measurement) serveConfig() {
	m.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.Listener.Close()
	testkit.Must(m, m.host.Do(func() (err error) {
		s.Listener, err = net.Listen("tcp", ":22623")
		return err
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // jobs are killed while they connect
	s.StartTLS()
	testkit.Cleanup(m, s.Config.Close)
}

func nodeName(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("master-%d", i)
	}
	return fmt.Sprintf("worker-%d.demo.example.com", i)
}

// nodeAddress returns a node's address: compute nodes are on other networks.
func nodeAddress(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("192.168.111.%d", 20+i)
	}
	return fmt.Sprintf("10.32.%d.%d", i/200, i%200+1)
}

// nodeObject returns a Node with what the agent reads, and as much besides as kubelet, the network,
// the operators and storage drivers add.
func nodeObject(i int) apitest.Object {
	role := v1alpha1.RoleWorker
	if i < controlPlane {
		role = v1alpha1.RoleMaster
	}
	labels := map[string]string{v1alpha1.RoleLabel(role): ""}
	for n := range 35 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%d", n)] = "true"
	}
	var images []apitest.Object
	for n := range 50 { // as many as kubelet reports
		name := fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064x", n)
		images = append(images, apitest.Object{"names": []string{name, name}, "sizeBytes": 1<<28 + n})
	}
	return apitest.Object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": apitest.Object{"name": nodeName(i), "labels": labels, "annotations": apitest.Object{"example.com/others": strings.Repeat("x", 4000)}},
		"status":   apitest.Object{"addresses": addresses(i, nodeAddress(i)), "conditions": conditions(), "images": images},
	}
}

func addresses(i int, address string) []apitest.Object {
	return []apitest.Object{{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": nodeName(i)}}
}

// conditions returns what a kubelet reports now.
func conditions() (out []apitest.Object) {
	for _, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		out = append(out, apitest.Object{
			"type": c, "status": map[bool]string{true: "True", false: "False"}[c == "Ready"], "reason": "KubeletHas" + c,
			"message":           "kubelet has posted the status of " + c,
			"lastHeartbeatTime": time.Now().UTC().Format(time.RFC3339), "lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	return out
}

// job is one of the agent's jobs on the node.
type job struct {
	name, pod string
	conf      string          // the file that it maintains; empty if it is none
	names     string          // the file that names the other nodes
	up        string          // what it logs when it works: what it publishes may be a second late
	protocol  time.Duration   // for other hosts to object
	process   *daemon.Process // nil before the first start
	began     time.Time       // when the agent was executed
}

// logged returns how often the job has logged words.
func (j *job) logged(words string) int { return strings.Count(j.process.Output(), words) }

// start executes the agent with the job's command line of the rendered pod.
func (m *measurement) start(j *job) {
	m.Helper()
	var pod corev1.Pod
	testkit.Must(m, yaml.Unmarshal(testkit.ReadFile(m, rendered+"master"+v1alpha1.ManifestDir+"/"+j.pod+".yaml"), &pod))
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return len(c.Command) > 1 && c.Command[1] == j.name })
	j.process = m.host.Start([]string{"NODE_NAME=" + nodeName(0)}, pod.Spec.Containers[i].Command...)
	testkit.Await(m, "the agent to be executed, after namespaces and mounts", func() bool {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", j.process.PID()))
		return string(name) == "vipgen-agent\n"
	})
	j.began = time.Now()
}

// kill ends the agent and its daemon, and removes the file that it maintains, but not its
// recorded state.
func (m *measurement) kill(j *job) {
	m.Helper()
	if j.process == nil {
		return
	}
	j.process.Kill()
	if j.name == "firewall" {
		if out, err := m.host.Run(nil, "nft", "delete", "table", "inet", firewall.TableName); err != nil {
			m.Fatalf("%v: %s", err, out)
		}
	}
	if j.conf != "" {
		for _, path := range slices.Compact([]string{j.conf, j.names}) {
			testkit.Must(m, os.Remove(m.host.Path(path)))
		}
	}
}

// awaitUp waits until the job works and its file names the other nodes.
func (m *measurement) awaitUp(j *job) {
	m.Helper()
	testkit.Await(m, j.name+" to have its configuration in place", func() bool {
		return j.logged(j.up) > 0 && (j.names == "" || m.contains(j.names, nodeAddress(controlPlane-1)))
	})
}

// contains reports whether a file of the node has an address.
func (m *measurement) contains(path, address string) bool {
	data, _ := os.ReadFile(m.host.Path(path))
	return slices.ContainsFunc([]string{" ", ":", "\n"}, func(end string) bool { return bytes.Contains(data, []byte(address+end)) })
}

// idle observes memory and CPU time while nothing changes except for heartbeats of kubelets, each
// after a while unless that is 0.
func (m *measurement) idle(what string, aim int64, between time.Duration) {
	m.Helper()
	time.Sleep(settle)
	before := map[*job]time.Duration{}
	for _, j := range m.jobs {
		before[j] = m.cpu(j)
	}
	began := time.Now()
	for beats := 0; time.Since(began) < window; time.Sleep(100 * time.Millisecond) {
		for ; between > 0 && time.Duration(beats)*between < time.Since(began); beats++ {
			m.patch(controlPlane+beats, apitest.Object{"conditions": conditions()})
		}
	}
	for _, j := range m.jobs {
		share := 100 * (m.cpu(j) - before[j]).Seconds() / time.Since(began).Seconds()
		m.row(j.name+": of a core, "+what, fmt.Sprintf("%.2f %%", share), "0.20 %", share < 0.2, fmt.Sprintf("over %v", window))
	}
	for _, j := range m.jobs {
		var kib int64
		for line := range strings.Lines(string(testkit.ReadFile(m, fmt.Sprintf("/proc/%d/status", j.process.PID())))) {
			fmt.Sscanf(line, "VmRSS: %d kB", &kib)
		}
		m.row(j.name+": resident, "+what, mib(kib<<10), fmt.Sprintf("%d MiB", aim), kib <= aim<<10, "")
	}
}

// cpu returns the CPU time of a job with all its threads, without its children, since its start:
// clock_getcpuclockid(3).
func (m *measurement) cpu(j *job) time.Duration {
	m.Helper()
	const scheduler = 2 // CPUCLOCK_SCHED, of a process
	var t unix.Timespec
	testkit.Must(m, unix.ClockGettime(int32(^j.process.PID()<<3|scheduler), &t))
	return time.Duration(t.Nano())
}

// restart restarts every job repeatedly, with its files on disk.
func (m *measurement) restart() {
	m.Helper()
	for _, j := range m.jobs {
		var took []time.Duration
		for range starts {
			m.kill(j)
			m.start(j)
			m.awaitUp(j)
			took = append(took, time.Since(j.began))
		}
		m.times(j.name+": first configuration", took, 200*time.Millisecond+j.protocol)
	}
}

// change repeatedly changes the address of a control-plane node, and measures from the API
// server's answer until the jobs' files have the address and their daemons were reloaded.
func (m *measurement) change() {
	m.Helper()
	const moved, applied = 1, "configuration applied"
	follow := slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.names == "" })
	took := map[*job][]time.Duration{}
	for range changes {
		m.moves++
		address := fmt.Sprintf("192.168.111.%d", 100+m.moves)
		time.Sleep(apart)
		before := map[*job]int{}
		for _, j := range follow {
			before[j] = j.logged(applied)
		}
		m.patch(moved, apitest.Object{"addresses": addresses(moved, address)})
		began := time.Now()
		waiting := slices.Clone(follow)
		testkit.Await(m, "every job to follow", func() bool {
			waiting = slices.DeleteFunc(waiting, func(j *job) bool {
				// CoreDNS watches its hosts file.
				done := m.contains(j.names, address) && (j.names != j.conf || j.logged(applied) > before[j])
				if done {
					took[j] = append(took[j], time.Since(began))
				}
				return done
			})
			return len(waiting) == 0
		})
	}
	for _, j := range follow {
		m.times(j.name+": change of peers", took[j], time.Second)
	}
}

// patch changes the status of a node as its kubelet does.
func (m *measurement) patch(i int, status apitest.Object) {
	m.Helper()
	m.api.Patch(apitest.NodesPath+"/"+nodeName(i)+"/status", apitest.Object{"status": status})
}

// times adds a row of durations, the longest of which must be within the target.
func (m *measurement) times(what string, took []time.Duration, aim time.Duration) {
	slices.Sort(took)
	worst := took[len(took)-1]
	m.row(fmt.Sprintf("%s, %d nodes", what, m.nodes), ms(took[len(took)/2]), ms(aim), worst < aim, fmt.Sprintf("median; worst of %d: %s", len(took), ms(worst)))
}

// row adds a line to the table.
func (m *measurement) row(what, measured, aim string, met bool, notes string) {
	fmt.Fprintf(m.table, "%s\t%s\t%s\t%s\t%s\n", what, measured, aim, map[bool]string{true: "met", false: "MISSED"}[met], notes)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
