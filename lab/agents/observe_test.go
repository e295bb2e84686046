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
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
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
// unhealthy.
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
		`vipgen_haproxy_serving`: "1", `vipgen_check_healthy{check="haproxy"}`: "1",
		`vipgen_config_refused_total{daemon="haproxy"}`: "0", `vipgen_config_current{daemon="haproxy"}`: "1",
	} {
		b.awaitMetric(port, series, want)
	}
	b.put(v1alpha1.HAProxyTemplate, plainChecks+"\nfrobnicate\n")
	b.awaitMetric(port, `vipgen_config_refused_total{daemon="haproxy"}`, "1")
	b.awaitMetric(port, `vipgen_config_current{daemon="haproxy"}`, "0")
	b.awaitHealth(port, http.StatusOK, "ok")
	b.put(v1alpha1.HAProxyTemplate, plainChecks)
	b.awaitMetric(port, `vipgen_config_current{daemon="haproxy"}`, "1")

	b.signal("haproxy", syscall.SIGSTOP)
	b.awaitHealth(port, http.StatusServiceUnavailable, "HAProxy does not answer")
	b.awaitMetric(port, "vipgen_healthy", "0")
	b.signal("haproxy", syscall.SIGCONT)
	b.awaitHealth(port, http.StatusOK, "ok")
	b.signal("haproxy", syscall.SIGKILL)
	b.awaitMetric(port, `vipgen_daemon_restarts_total{daemon="haproxy"}`, "1")
	b.awaitHealth(port, http.StatusOK, "ok")
	b.put(v1alpha1.ClusterConfigPath, "spec: [")
	b.awaitMetric(port, "vipgen_cluster_config_current", "0")
	b.awaitHealth(port, http.StatusOK, "ok")
}

// Restored rules are counted, and a working job is healthy whether HAProxy serves or not. Its rules
// end with it.
func TestObserveFirewall(t *testing.T) {
	t.Parallel()
	s := newContainer(newNode(t, "192.0.2.10/24"), manifest.HAProxy, "firewall")
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
	s.awaitHealth(port, http.StatusOK, "ok")
	testkit.Must(t, dir.Publish(state.HAProxy{Restarting: true}))
	s.await("word that HAProxy crashed", func() bool {
		p, alive := published[state.Firewall](s)
		return alive && p.Restarting && !p.InPlace
	})
	for _, line := range []string{"redirect placed", "something else had removed", "redirect withdrawn"} {
		s.await("the log of it: "+line, func() bool { return strings.Contains(s.output(), line) })
		testkit.Equal(testkit.In(t, line, s.output()), 1, strings.Count(s.output(), line))
	}
	testkit.Must(t, dir.Publish(state.HAProxy{Serving: true}))
	s.awaitMetric(port, "vipgen_redirect_in_place", "1")
	testkit.Equal(t, command.OK, s.stop())
	testkit.Lacks(t, string(testkit.Run(t, s.Command(t.Context(), "nft", "list", "ruleset"))), "vipgen")
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

// If the cluster asks for it, metrics are served at the node's address, and not at a VIP or another
// address, until the cluster no longer asks for it.
func TestMonitorIsOnTheNodesAddress(t *testing.T) {
	t.Parallel()
	n := newNode(t, "192.0.2.10/24", "198.51.100.10/24")
	cluster := testkit.ReadFile(t, "../../cmd/agentcli/testdata/cluster.yaml")
	n.put(v1alpha1.ClusterConfigPath, strings.Replace(string(cluster), "spec:\n", "spec:\n  metrics: Node\n", 1))
	testkit.Must(t, n.AddAddress("eth0", netip.MustParsePrefix("192.0.2.5/32")))
	s := newContainer(n, manifest.HAProxy, "firewall")
	s.start()
	port := v1alpha1.DefaultPorts.FirewallMonitor
	s.awaitHealth(port, http.StatusOK, "ok")
	onNode := func(addresses ...string) bool {
		return slices.Equal(slices.DeleteFunc(s.listens(port), func(a string) bool { return a == "127.0.0.1" || a == "[::1]" }), addresses)
	}
	s.await("the port at the node's address alone", func() bool { return onNode("192.0.2.10") })
	s.put(v1alpha1.ClusterConfigPath, string(cluster))
	s.await("the port on loopback alone", func() bool { return onNode() })
	s.awaitHealth(port, http.StatusOK, "ok")
}
