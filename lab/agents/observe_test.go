package agents

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
)

// get requests a port on the node's loopback; code is 0 without an answer.
func (s *service) get(port int, path string) (code int, body string) {
	s.t.Helper()
	client := http.Client{Timeout: waitTime, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       s.DialContext,
	}}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	testkit.Must(s.t, err)
	return resp.StatusCode, string(data)
}

// awaitHealth waits for an answer of /healthz with these words.
func (s *service) awaitHealth(port, code int, words string) {
	s.t.Helper()
	s.await(fmt.Sprintf("%d %q from /healthz", code, words), func() bool {
		got, body := s.get(port, "/healthz")
		return got == code && strings.Contains(body, words)
	})
}

// metric returns the value of a series as text, "" if there is none.
func (s *service) metric(port int, series string) string {
	s.t.Helper()
	_, body := s.get(port, "/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (.*)$`).FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	return m[1]
}

func (s *service) awaitMetric(port int, series, want string) {
	s.t.Helper()
	s.await(series+" "+want, func() bool { return s.metric(port, series) == want })
}

// lint checks all metrics against Prometheus' conventions.
func (s *service) lint(port int) {
	s.t.Helper()
	_, body := s.get(port, "/metrics")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	testkit.Check(s.t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "vipgen_") {
			s.t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// signal sends a signal to all processes of that name on the node.
func (s *service) signal(name string, sig syscall.Signal) {
	s.t.Helper()
	for _, text := range s.pids(name) {
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, sig)
		}
		if err != nil && err != syscall.ESRCH {
			s.t.Error(err)
		}
	}
}

// A refused template increments the count of refusals alone; a stopped daemon makes the job
// unhealthy; a change of the port is followed.
func TestObserveHAProxy(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	b := newBalancer(t)
	port := v1alpha1.DefaultPorts.HAProxyMonitor
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	b.up(m0, m1)
	b.awaitHealth(port, http.StatusOK, "ok")
	b.lint(port)
	for series, want := range map[string]string{
		`vipgen_haproxy_backend_up{address="192.0.2.10:6443",backend="master-0"}`: "1",
		`vipgen_haproxy_serving`: "1", `vipgen_healthy`: "1", `vipgen_check_healthy{check="haproxy"}`: "1",
		`vipgen_daemon_up{daemon="haproxy"}`: "1", `vipgen_daemon_restarts_total{daemon="haproxy"}`: "0",
		`vipgen_config_refused_total{daemon="haproxy"}`: "0", `vipgen_config_current{daemon="haproxy"}`: "1",
		`vipgen_cluster_config_current`: "1",
	} {
		b.awaitMetric(port, series, want)
	}
	b.await("probes that were measured", func() bool {
		n, err := strconv.Atoi(b.metric(port, `vipgen_check_duration_seconds_count{check="haproxy"}`))
		return err == nil && n > 2
	})

	b.put(v1alpha1.HAProxyTemplate, plainChecks+"\nfrobnicate\n")
	b.awaitMetric(port, `vipgen_config_refused_total{daemon="haproxy"}`, "1")
	b.awaitMetric(port, `vipgen_config_current{daemon="haproxy"}`, "0")
	if b.metric(port, `vipgen_config_refused_timestamp_seconds{daemon="haproxy"}`) == "" {
		t.Error("no time of the refusal")
	}
	b.awaitHealth(port, http.StatusOK, "ok")
	b.put(v1alpha1.HAProxyTemplate, plainChecks)
	b.awaitMetric(port, `vipgen_config_current{daemon="haproxy"}`, "1")
	b.awaitMetric(port, `vipgen_config_refused_total{daemon="haproxy"}`, "1")

	b.signal("haproxy", syscall.SIGSTOP)
	b.awaitHealth(port, http.StatusServiceUnavailable, "HAProxy does not answer")
	b.awaitMetric(port, "vipgen_healthy", "0")
	b.signal("haproxy", syscall.SIGCONT)
	b.awaitHealth(port, http.StatusOK, "ok")
	b.signal("haproxy", syscall.SIGKILL)
	b.awaitMetric(port, `vipgen_daemon_restarts_total{daemon="haproxy"}`, "1")
	b.awaitHealth(port, http.StatusOK, "ok")
	b.daemons()

	cluster := testkit.ReadFile(t, "../../cmd/agentcli/testdata/cluster.yaml")
	moved := strings.Replace(string(cluster), "haproxyMonitor: 9454", "haproxyMonitor: 9554", 1)
	if moved == string(cluster) {
		t.Fatal("no port to change")
	}
	b.put(v1alpha1.ClusterConfigPath, moved)
	b.awaitHealth(9554, http.StatusOK, "ok")
	if code, _ := b.get(port, "/healthz"); code != 0 {
		t.Errorf("the old port still answers: %d", code)
	}
	b.put(v1alpha1.ClusterConfigPath, "spec: [")
	b.awaitMetric(9554, "vipgen_cluster_config_current", "0")
	b.awaitHealth(9554, http.StatusOK, "ok")
	b.awaitState("the problem", func(s state.HAProxy) bool { return s.Problem != "" })
}

// The level of a running job is changed from its container, and that of all jobs on the host.
func TestLogLevelOfARunningJob(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	b.up(m0)
	set := func(args ...string) {
		t.Helper()
		if _, errOut, code := b.run(append([]string{"/vipgen/vipgen-agent", "log-level"}, args...)...); code != command.OK {
			t.Fatalf("log-level %v: %d: %s", args, code, errOut)
		}
	}
	said := func(words string) {
		t.Helper()
		b.await(words, func() bool { return strings.Contains(b.output(), words) })
	}
	if _, errOut, code := b.run("/vipgen/vipgen-agent", "log-level", "ERROR"); code != command.Failed || !strings.Contains(errOut, "--job") {
		t.Errorf("a container changes the level of all jobs: %d: %s", code, errOut)
	}
	b.put(v1alpha1.RunDir+"/log-level", "ERROR\n")
	said("level=ERROR before=INFO")
	quiet := len(b.output())
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	b.up(m0, m1)
	testkit.Lacks(t, b.output()[quiet:], "level=INFO")
	set("DEBUG", "--job", "haproxy")
	said("level=DEBUG before=ERROR")
	b.put(v1alpha1.JobDir("haproxy")+"/log-level", "loud\n")
	said("is not a log level")
	set("default", "--job", "haproxy")
	b.put(v1alpha1.RunDir+"/log-level", "INFO\n")
	said("level=INFO before=ERROR")
	if n := strings.Count(b.output(), "is not a log level"); n != 1 {
		t.Errorf("%d complaints about one wrong word:\n%s", n, b.output())
	}
}

// Restored rules are counted, and a working job is healthy whether HAProxy serves or not. Its rules
// end with it.
func TestObserveFirewall(t *testing.T) {
	t.Parallel()
	s := newContainer(newNode(t, "192.0.2.10/24"), pod.HAProxy, "firewall")
	s.start()
	port := v1alpha1.DefaultPorts.FirewallMonitor
	dir, err := state.Open(s.Path(v1alpha1.RunDir))
	testkit.Must(t, err)
	defer dir.Close()
	testkit.Must(t, dir.Publish(state.HAProxy{Serving: true}))
	s.awaitMetric(port, "vipgen_redirect_in_place", "1")
	s.awaitMetric(port, `vipgen_redirect_vip{vip="192.0.2.5"}`, "1")
	s.awaitHealth(port, http.StatusOK, "ok")
	s.awaitMetric(port, "vipgen_redirect_restored_total", "0")
	s.lint(port)
	testkit.Run(t, s.Command(t.Context(), "nft", "flush", "ruleset"))
	s.awaitMetric(port, "vipgen_redirect_restored_total", "1")
	s.awaitMetric(port, "vipgen_redirect_in_place", "1")
	testkit.Must(t, dir.Publish(state.HAProxy{}))
	s.awaitMetric(port, "vipgen_redirect_in_place", "0")
	s.awaitMetric(port, "vipgen_redirect_wanted", "0")
	s.awaitHealth(port, http.StatusOK, "ok")
	if p, alive := published[state.Firewall](s); !alive || p.Restored != 1 {
		t.Errorf("published: %+v", p)
	}
	testkit.Must(t, dir.Publish(state.HAProxy{Restarting: true}))
	s.await("word that HAProxy crashed", func() bool {
		p, alive := published[state.Firewall](s)
		return alive && p.Restarting && !p.InPlace
	})
	for _, line := range []string{"redirect placed", "something else had removed", "redirect withdrawn"} {
		s.await("the log of it: "+line, func() bool { return strings.Contains(s.output(), line) })
		if n := strings.Count(s.output(), line); n != 1 {
			t.Errorf("%q is logged %d times:\n%s", line, n, s.output())
		}
	}
	testkit.Must(t, dir.Publish(state.HAProxy{Serving: true}))
	s.awaitMetric(port, "vipgen_redirect_in_place", "1")
	testkit.Equal(t, command.OK, s.stop())
	testkit.Lacks(t, string(testkit.Run(t, s.Command(t.Context(), "nft", "list", "ruleset"))), "vipgen")
}

// A stopped CoreDNS does not answer, which is unhealthy.
func TestObserveCoreDNS(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	s := newService(t, pod.CoreDNS, "192.0.2.10/24")
	port := v1alpha1.DefaultPorts.CoreDNSMonitor
	s.awaitHealth(port, http.StatusOK, "ok")
	s.awaitMetric(port, "vipgen_coredns_serving", "1")
	s.lint(port)
	s.signal("coredns", syscall.SIGSTOP)
	s.awaitHealth(port, http.StatusServiceUnavailable, "CoreDNS does not answer")
	s.signal("coredns", syscall.SIGCONT)
	s.awaitHealth(port, http.StatusOK, "ok")
	s.signal("coredns", syscall.SIGKILL)
	s.awaitMetric(port, `vipgen_daemon_restarts_total{daemon="coredns"}`, "1")
	s.awaitHealth(port, http.StatusOK, "ok")
}

// listens returns the addresses at which a port of the node is open, sorted.
func (s *service) listens(port int) (out []string) {
	s.t.Helper()
	for line := range strings.Lines(string(testkit.Run(s.t, s.Command(s.t.Context(), "ss", "-Hltn")))) {
		if f := strings.Fields(line); strings.HasSuffix(f[3], ":"+strconv.Itoa(port)) {
			out = append(out, strings.TrimSuffix(f[3], ":"+strconv.Itoa(port)))
		}
	}
	slices.Sort(out)
	return out
}

// If the cluster asks for it, another node reads the metrics at the node's address: not at a
// VIP or another address, and metrics alone. It ends when the cluster no longer asks for it.
func TestMonitorIsOnTheNodesAddress(t *testing.T) {
	t.Parallel()
	n := newNode(t, "192.0.2.10/24", "198.51.100.10/24")
	cluster := testkit.ReadFile(t, "../../cmd/agentcli/testdata/cluster.yaml")
	n.put(v1alpha1.ClusterConfigPath, strings.Replace(string(cluster), "spec:\n", "spec:\n  metrics: Node\n", 1))
	testkit.Must(t, n.AddAddress("eth0", netip.MustParsePrefix("192.0.2.5/32")))
	other := daemon.AddNode(t, n.network, "prometheus", "192.0.2.90/24")
	s := newContainer(n, pod.HAProxy, "firewall")
	s.start()
	port := v1alpha1.DefaultPorts.FirewallMonitor
	s.awaitHealth(port, http.StatusOK, "ok")
	onNode := func(addresses ...string) bool {
		got := slices.DeleteFunc(s.listens(port), func(a string) bool { return a == "127.0.0.1" || a == "[::1]" })
		return slices.Equal(got, addresses)
	}
	s.await("the port at the node's address alone", func() bool { return onNode("192.0.2.10") })
	ask := func(path string) (int, string) {
		client := http.Client{Timeout: waitTime, Transport: &http.Transport{DisableKeepAlives: true, DialContext: other.DialContext}}
		resp, err := client.Get(fmt.Sprintf("http://192.0.2.10:%d%s", port, path))
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		testkit.Check(t, err)
		return resp.StatusCode, string(body)
	}
	if code, body := ask("/metrics"); code != http.StatusOK || !strings.Contains(body, "\nvipgen_healthy 1\n") {
		t.Errorf("%d\n%s", code, body)
	}
	if code, body := ask("/healthz"); code != http.StatusNotFound {
		t.Errorf("/healthz for another node: %d %q", code, body)
	}
	s.put(v1alpha1.ClusterConfigPath, string(cluster))
	s.await("the port on loopback alone", func() bool { return onNode() })
	s.awaitHealth(port, http.StatusOK, "ok")
}
