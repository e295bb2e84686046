package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/firewall"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
	"github.com/vipgen/vipgen/templates/manifest"
)

// rendered is a golden case: what vipgen renders for the cluster.
const rendered = "../../golden/cases/baremetal-usermanaged/expected/files/"

// self is the measured node: the first of the control plane.
const self = 0

// node is a control-plane node with everything that the agent's jobs watch.
type node struct {
	*daemon.Host
	b     *testing.B
	state *state.Dir
}

func newNode(b *testing.B, program string, api *daemon.APIServer) *node {
	b.Helper()
	ns, err := daemon.NewNetwork(b).AddNode(nodeName(self), netip.MustParsePrefix(nodeAddress(self)+"/24"))
	testkit.Must(b, err)
	n := &node{Host: daemon.NewHost(b, ns), b: b}
	n.Bind(program, "/vipgen/vipgen-agent")
	n.Bind(testkit.Tool(b, "coredns"), "/coredns")
	for path, data := range map[string]string{
		v1alpha1.ClusterConfigPath:        readFile(b, rendered+"every-pool"+v1alpha1.ClusterConfigPath),
		v1alpha1.ModeFile:                 readFile(b, rendered+"every-pool"+v1alpha1.ModeFile),
		v1alpha1.KeepalivedTemplate:       keepalived.Template,
		v1alpha1.HAProxyTemplate:          haproxy.Template,
		v1alpha1.CorefileTemplate:         coredns.Template,
		v1alpha1.HostsTemplate:            coredns.HostsTemplate,
		"/run/NetworkManager/resolv.conf": "nameserver 192.168.111.1\n",
		"/etc/hosts":                      "127.0.0.1 localhost\n",
	} {
		n.Write(path, []byte(data))
	}
	n.credentials(api)
	n.services(api)
	testkit.Must(b, os.MkdirAll(n.Path(v1alpha1.RunDir), 0o755))
	if n.state, err = state.Open(n.Path(v1alpha1.RunDir)); err != nil {
		b.Fatal(err)
	}
	return n
}

// credentials writes kubelet's credentials, with the rights of vipgen's manifests.
func (n *node) credentials(api *daemon.APIServer) {
	n.b.Helper()
	if _, err := kubeapi.WriteKubeconfig(n.Path("/"), "/var/lib/kubelet", api.CA, nodeName(self), api.InternalName+":6443"); err != nil {
		n.b.Fatal(err)
	}
	for name, collection := range map[string]string{
		manifest.ClusterRole: "clusterroles", manifest.ClusterRoleBinding: "clusterrolebindings",
	} {
		data, err := manifest.Render(name, manifest.Params{})
		testkit.Must(n.b, err)
		api.Create("/apis/rbac.authorization.k8s.io/v1/"+collection, data)
	}
}

// services starts the targets of the node's checks: the API server and the machine config
// server.
func (n *node) services(api *daemon.APIServer) {
	n.b.Helper()
	forward(n.listen(":6443"), api.Addr.String())
	config := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	config.Listener.Close()
	config.Listener = n.listen(":22623")
	config.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
	config.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // jobs are killed while they connect
	config.StartTLS()
	n.b.Cleanup(func() { config.Config.Close() })
}

func (n *node) listen(address string) (l net.Listener) {
	n.b.Helper()
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(n.b, err)
	n.b.Cleanup(func() { l.Close() })
	return l
}

// forward connects to an address outside of the node's namespace for each connection.
func forward(l net.Listener, to string) {
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					io.Copy(out, in)
					out.Close()
				}()
				io.Copy(in, out)
			}()
		}
	}()
}

// await polls until ok.
func (n *node) await(what string, ok func() bool) {
	n.b.Helper()
	testkit.Await(n.b, what, ok)
}

// commandOf returns the command line of a job in the rendered pods.
func commandOf(b *testing.B, pod, job string) []string {
	b.Helper()
	var p corev1.Pod
	testkit.Must(b, yaml.Unmarshal([]byte(readFile(b, rendered+"master/etc/kubernetes/manifests/"+pod+".yaml")), &p))
	for _, c := range p.Spec.Containers {
		if len(c.Command) > 1 && c.Command[1] == job {
			return c.Command
		}
	}
	b.Fatalf("pod %s has no container that runs %s", pod, job)
	return nil
}

func readFile(b *testing.B, path string) string {
	b.Helper()
	return string(testkit.ReadFile(b, path))
}

// memory is the resident memory of a process, in KiB. Pages that are not anonymous belong to
// files, and are shared by all processes of a program.
type memory struct{ rss, anonymous, peak int }

func memoryOf(b *testing.B, pid int) (m memory) {
	b.Helper()
	fields := map[string]*int{"Rss:": &m.rss, "Anonymous:": &m.anonymous, "VmHWM:": &m.peak}
	for _, file := range []string{"smaps_rollup", "status"} {
		data := testkit.ReadFile(b, fmt.Sprintf("/proc/%d/%s", pid, file))
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && fields[f[0]] != nil {
				n, err := strconv.Atoi(f[1])
				testkit.Must(b, err)
				*fields[f[0]] = n
			}
		}
	}
	return m
}

// cpuOf returns the CPU time of a process with all its threads, without its children, since its
// start: clock_getcpuclockid(3).
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	const scheduler = 2 // CPUCLOCK_SCHED, of a process
	var t unix.Timespec
	testkit.Must(b, unix.ClockGettime(int32(^pid<<3|scheduler), &t))
	return time.Duration(t.Nano())
}

// command returns the name of the program that a process runs; empty if it ended.
func command(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return string(bytes.TrimSpace(data))
}

// runs reports whether a process has a child with a word on its command line.
func runs(pid int, program, word string) bool {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		children, _ := os.ReadFile(l)
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			id, _ := strconv.Atoi(child)
			if command(id) == program && bytes.Contains(line, []byte(word)) {
				return true
			}
		}
	}
	return false
}

// Of the cluster: the first nodes are the control plane, and the others are
// compute nodes on other networks.
const (
	controlPlane = 3
	domain       = "demo.example.com"
)

func nodeName(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("master-%d", i)
	}
	return fmt.Sprintf("worker-%d.%s", i, domain)
}

func nodeAddress(i int) string {
	if i < controlPlane {
		return fmt.Sprintf("192.168.111.%d", 20+i)
	}
	return fmt.Sprintf("10.32.%d.%d", i/200, i%200+1)
}

// addNodes registers nodes number from to to-1, as large as those of a cluster
// that has run for a while.
func addNodes(b *testing.B, api *daemon.APIServer, from, to int) {
	b.Helper()
	objects := make(chan []byte)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for object := range objects {
				api.Create("/api/v1/nodes", object)
			}
		})
	}
	for i := from; i < to; i++ {
		objects <- nodeObject(i)
	}
	close(objects)
	all.Wait()
}

// nodeObject returns a Node with what the agent reads, and as much besides as kubelet, the network,
// the operators and storage drivers add. The API server adds managedFields.
func nodeObject(i int) []byte {
	role := "worker"
	if i < controlPlane {
		role = "master"
	}
	labels := map[string]string{"node-role.kubernetes.io/" + role: ""}
	for n := range 35 {
		labels[fmt.Sprintf("feature.node.kubernetes.io/cpu-feature-%d", n)] = "true"
	}
	var images []map[string]any
	for n := range 50 { // as many as kubelet reports
		name := fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064x", n)
		images = append(images, map[string]any{"names": []string{name, name}, "sizeBytes": 1<<28 + n})
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": nodeName(i), "labels": labels, "annotations": map[string]string{"example.com/others": strings.Repeat("x", 1500)},
		},
		"status": map[string]any{"addresses": addresses(i, nodeAddress(i)), "conditions": conditions(time.Now()), "images": images},
	})
	if err != nil {
		panic(err)
	}
	return data
}

func addresses(i int, address string) []map[string]string {
	return []map[string]string{{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": nodeName(i)}}
}

func conditions(beat time.Time) (out []map[string]any) {
	for _, c := range []string{"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"} {
		status := "False"
		if c == "Ready" {
			status = "True"
		}
		out = append(out, map[string]any{
			"type": c, "status": status, "reason": "KubeletHas" + c,
			"message":            "kubelet has posted the status of " + c,
			"lastHeartbeatTime":  beat.UTC().Format(time.RFC3339),
			"lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	return out
}

// job is one of the agent's jobs on a node.
type job struct {
	*node
	name, pod string
	conf      string        // the file that it maintains; empty if it is none
	daemon    string        // the program that it runs on conf
	names     string        // the file that names the other nodes
	protocol  time.Duration // for other hosts to object
	process   *daemon.Process
	began     time.Time // when the agent was executed
}

func (n *node) jobs() []*job {
	return []*job{
		{node: n, name: "keepalived", pod: "keepalived", conf: v1alpha1.KeepalivedConf, daemon: "keepalived", names: v1alpha1.KeepalivedConf},
		{node: n, name: "haproxy", pod: "haproxy", conf: v1alpha1.HAProxyConf, daemon: "haproxy", names: v1alpha1.HAProxyConf},
		{node: n, name: "firewall", pod: "haproxy"},
		{node: n, name: "coredns", pod: "coredns", conf: v1alpha1.Corefile, daemon: "coredns", names: v1alpha1.HostsFile},
		// RFC 6762 section 8.1: up to 250 ms at random, then three probes.
		{node: n, name: "mdns", pod: "mdns-publisher", protocol: time.Second},
	}
}

// start executes the agent with the job's command line.
func (j *job) start() {
	j.b.Helper()
	j.process = j.Start([]string{"NODE_NAME=" + nodeName(self)}, commandOf(j.b, j.pod, j.name)...)
	// Namespaces and mounts come first.
	j.await("the agent to be executed", func() bool { return command(j.pid()) == "vipgen-agent" })
	j.began = time.Now()
}

func (j *job) pid() int { return j.process.PID() }

// kill ends the agent and its daemon, and removes the file that it maintains, but not its
// recorded state.
func (j *job) kill() {
	j.b.Helper()
	j.process.Kill()
	if j.name == "firewall" {
		if out, err := j.Run(nil, "nft", "delete", "table", "inet", firewall.TableName); err != nil {
			j.b.Fatalf("%v: %s", err, out)
		}
	}
	if j.conf == "" {
		return
	}
	for _, path := range slices.Compact([]string{j.conf, j.names}) {
		testkit.Must(j.b, os.Remove(j.Path(path)))
	}
}

// up reports whether the job's file exists and names the other nodes, and its daemon has
// started.
func (j *job) up() bool {
	switch j.name {
	case "firewall":
		p, err := state.Read[state.Firewall](j.state)
		return err == nil && p != nil && p.InPlace
	case "mdns":
		p, err := state.Read[state.MDNS](j.state)
		return err == nil && p != nil && p.Announced
	}
	return j.contains(j.names, nodeAddress(controlPlane-1)) && runs(j.pid(), j.daemon, j.conf)
}

// applied returns how often the job had its daemon load a configuration.
func (j *job) applied() int { return strings.Count(j.process.Output(), "configuration applied") }
