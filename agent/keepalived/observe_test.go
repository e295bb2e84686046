package keepalived

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// get requests a path of the job's monitor; code is 0 without an answer.
func (n *node) get(path string) (code int, body string) {
	n.t.Helper()
	client := http.Client{Timeout: testkit.Patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       n.DialContext,
	}}
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", v1alpha1.DefaultPorts.KeepalivedMonitor, path))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	testkit.Must(n.t, err)
	return resp.StatusCode, string(data)
}

func (n *node) awaitHealth(code int, words string) {
	n.t.Helper()
	testkit.Await(n.t, fmt.Sprintf("%d %q from /healthz of %s", code, words, n.name), func() bool {
		got, body := n.get("/healthz")
		return got == code && strings.Contains(body, words)
	})
}

// metric returns the value of a series, -1 if there is none.
func (n *node) metric(series string) float64 {
	n.t.Helper()
	_, body := n.get("/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (.*)$`).FindStringSubmatch(body)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	testkit.Must(n.t, err)
	return v
}

func (n *node) awaitMetric(series string, want float64) {
	n.t.Helper()
	testkit.Await(n.t, fmt.Sprintf("%s %v on %s", series, want, n.name), func() bool { return n.metric(series) == want })
}

// TestObserve: metrics and health follow the node: its VIP and priority, a refused template, an
// unreachable API server, a keepalived that hangs.
func TestObserve(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.nodes[c.holder(c.all()...)]
	other := c.nodes[c.others(holder.name)[0]]
	s := holder.awaitState("the local API counts", func(s state.Keepalived) bool { return running(s) && s.Instances[0].Priority == 45 })
	name := s.Instances[0].Name
	series := func(metric string, more ...string) string {
		var term string
		if len(more) > 0 {
			term = `term="` + more[0] + `",`
		}
		return fmt.Sprintf(`%s{%svip=%q,vrrp_instance=%q}`, metric, term, apiVIP, name)
	}
	for _, n := range []*node{holder, other} {
		n.awaitHealth(http.StatusOK, "ok")
		n.awaitMetric("vipgen_takes_part", 1)
		n.awaitMetric(series("vipgen_vip_peers"), 2) // the other one and the bootstrap
		n.awaitMetric("vipgen_nodes", 2)
		n.awaitMetric("vipgen_api_reachable", 1)
	}
	holder.awaitMetric(series("vipgen_vip_held"), 1)
	other.awaitMetric(series("vipgen_vip_held"), 0)
	holder.awaitMetric(series("vipgen_vip_priority"), 45)
	holder.awaitMetric(series("vipgen_vip_priority_base"), 40)
	holder.awaitMetric(series("vipgen_vip_term_on", "lb-or-api"), 1)
	holder.awaitMetric(series("vipgen_vip_term_points", "lb-or-api"), 5)
	holder.awaitMetric(series("vipgen_vip_fault"), 0)
	holder.awaitMetric(`vipgen_check_healthy{check="api"}`, 1)
	_, body := holder.get("/metrics")
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	testkit.Check(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "vipgen_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}

	holder.Write(v1alpha1.KeepalivedTemplate, []byte(strings.ReplaceAll(keepalived.Template, "virtual_router_id", "frobnicate")))
	holder.awaitMetric(`vipgen_config_refused_total{daemon="keepalived"}`, 1)
	holder.awaitMetric(`vipgen_config_current{daemon="keepalived"}`, 0)
	holder.awaitHealth(http.StatusOK, "ok") // the last good one runs
	holder.Write(v1alpha1.KeepalivedTemplate, []byte(keepalived.Template))
	holder.awaitMetric(`vipgen_config_current{daemon="keepalived"}`, 1)

	pid := holder.awaitState("it runs", running).PID
	testkit.Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	holder.awaitHealth(http.StatusServiceUnavailable, "keepalived does not answer")
	holder.awaitMetric("vipgen_healthy", 0)
	testkit.Must(t, syscall.Kill(pid, syscall.SIGCONT))
	holder.awaitHealth(http.StatusOK, "ok")

	// A move is counted on both nodes, and each counts its own tenure of the VIP.
	taken, lost, heldFor := series("vipgen_vip_taken_total"), series("vipgen_vip_lost_total"), series("vipgen_vip_held_seconds_total")
	lostBefore, takenBefore, heldBefore := holder.metric(lost), other.metric(taken), other.metric(heldFor)
	if n := holder.metric(taken); n < 1 || holder.metric(heldFor) <= 0 || holder.metric("vipgen_late_seconds_total") < 0 {
		t.Errorf("the holder took the VIP %v times, and has had it for %v", n, holder.metric(heldFor))
	}
	holder.api.Kill()
	other.awaitMetric(series("vipgen_vip_held"), 1)
	other.awaitMetric(taken, takenBefore+1)
	holder.awaitMetric(lost, lostBefore+1)
	testkit.Await(t, "the new holder's time to grow", func() bool { return other.metric(heldFor) > heldBefore })
	if before := holder.metric(heldFor); holder.metric(heldFor) != before {
		t.Error("a node that does not hold the VIP counts its time")
	}

	other.api.Kill() // each reads from the others' once its own has ended
	holder.awaitMetric("vipgen_api_reachable", 0)
	holder.awaitMetric("vipgen_nodes_stale", 1)
	holder.awaitMetric("vipgen_nodes", 2)
	holder.awaitMetric(`vipgen_check_healthy{check="api"}`, 0)
	holder.awaitMetric(series("vipgen_vip_priority"), 40)
	if last := holder.metric("vipgen_api_contact_timestamp_seconds"); last <= 0 {
		t.Errorf("last contact at %v", last)
	}
	holder.awaitHealth(http.StatusOK, "ok")
}
