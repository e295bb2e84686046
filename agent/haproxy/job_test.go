package haproxy

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// crashJob is a Job with a simulated HAProxy.
type crashJob struct {
	*Job
	t *testing.T
}

func newCrashJob(t *testing.T) crashJob {
	dir, err := state.Open(t.TempDir())
	testkit.Must(t, err)
	t.Cleanup(func() { dir.Close() })
	log := slog.New(slog.DiscardHandler)
	return crashJob{&Job{State: dir, Source: &facts.Source{}, Log: log}, t}
}

func (c crashJob) expect(when string, serving, restarting bool) {
	c.t.Helper()
	s, err := state.Read[state.HAProxy](c.State)
	if err != nil || s == nil {
		c.t.Fatalf("%s: %v, error %v", when, s, err)
	}
	if s.Serving != serving || s.Restarting != restarting || s.Serving == (s.Why != "") {
		c.t.Errorf("%s: %+v; want serving %t, restarting %t", when, s, serving, restarting)
	}
}

// A crash is published at once. HAProxy that ran for a while before gets time to restart; one
// that crashes repeatedly does not.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrashJob(t)
		c.set(0, true, "")
		time.Sleep(steadyAfter)
		c.ended(false)
		c.expect("it crashed", false, true)
		c.set(0, true, "")
		c.expect("a check of the process that ended", false, true)
		time.Sleep(vrrp.RestartTime / 2)
		c.set(1, true, "")
		c.expect("it is back", true, true)
		time.Sleep(vrrp.RestartTime/2 + time.Millisecond)
		c.expect("a while later", true, false)
		c.ended(false)
		c.expect("it crashed again", false, false)

		c.set(2, true, "")
		time.Sleep(steadyAfter)
		c.ended(false)
		c.expect("it crashed after a while", false, true)
		time.Sleep(vrrp.RestartTime + time.Millisecond)
		c.expect("it did not come back", false, false)

		c.set(3, true, "")
		time.Sleep(steadyAfter)
		c.ended(true)
		c.expect("it ended with the job", false, false)
	})
}

// HAProxy is polled at once when it has logged that a server changed.
func TestLogged(t *testing.T) {
	for line, want := range map[string]int{
		"Server api-servers/master-1 is DOWN, reason: Layer4 timeout, check duration: 150ms. 2 active and 0 backup servers left.\n":  1,
		"[WARNING]  (17) : Server api-servers/master-1 is UP, reason: Layer7 check passed, code: 200, check duration: 4ms.\n":        1,
		"Server listening/master-1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 0ms.\n": 1,
		"Proxy api-servers started.\n":              0,
		"[NOTICE]   (1) : New worker (17) forked\n": 0,
	} {
		j := &Job{changes: make(chan struct{}, 1)}
		j.logged([]byte(line))
		j.logged([]byte(line)) // not polled yet
		testkit.Equal(testkit.In(t, line), want, len(j.changes))
	}
}

// A message that HAProxy prints in two forms is logged once, and a repeated one again.
func TestTwice(t *testing.T) {
	const down = "Server api-servers/master-1 is DOWN, reason: Layer4 timeout, check duration: 150ms. 0 active and 0 backup servers left.\n"
	j := &Job{changes: make(chan struct{}, 1)}
	for i, tt := range []struct {
		line string
		want bool
	}{
		{"[WARNING]  (17) : " + down, true},
		{down, false},
		{"[ALERT]    (17) : backend 'api-servers' has no server available!\n", true},
		{"backend api-servers has no server available!\n", false},
		{down, true},
		{down, true},
		{"[WARNING]  (17) : " + down, false},
		{"[NOTICE]   (1) : New worker (17) forked\n", true},
		{"Proxy api-servers started.\n", true},
		{"Proxy api-servers started.\n", true},
	} {
		testkit.Equal(testkit.In(t, i, tt.line), tt.want, j.logged([]byte(tt.line)))
	}
	for i := range 10 * mostPrinted {
		j.logged(fmt.Appendf(nil, "[WARNING]  (17) : line %d\n", i))
	}
	testkit.Equal(testkit.In(t, "kept lines"), mostPrinted, len(j.printed))
}

// gather are the values of a job's metrics, by name and backend.
func gather(t *testing.T, j *Job) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(j)
	families, err := r.Gather()
	testkit.Must(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				if l.GetName() == "backend" {
					name += " " + l.GetValue()
				}
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// The metrics of HAProxy on a compute node have other names: only the control plane reports
// whether an HAProxy serves the VIPs. Silent servers are counted, from zero.
func TestMetrics(t *testing.T) {
	for role, metric := range map[string]string{
		v1alpha1.RoleMaster: "vipgen_haproxy_serving", v1alpha1.RoleArbiter: "vipgen_haproxy_serving",
		v1alpha1.RoleWorker: "vipgen_haproxy_serving_own", "infra": "vipgen_haproxy_serving_own",
	} {
		c := newCrashJob(t)
		c.Source = &facts.Source{Role: role}
		c.backends = []state.Backend{{Name: "m0"}, {Name: "m1"}}
		c.set(0, true, "")
		before := c.last.Load()
		c.count("m1", 3)
		c.count("m1", 4)
		c.count("gone", 1)
		c.publish()
		got := gather(t, c.Job)
		for name, want := range map[string]float64{
			metric: 1,
			`vipgen_haproxy_server_silent_total gone`: 1, `vipgen_haproxy_connections_ended_total gone`: 1,
			`vipgen_haproxy_server_silent_total m0`: 0, `vipgen_haproxy_connections_ended_total m0`: 0,
			`vipgen_haproxy_server_silent_total m1`: 2, `vipgen_haproxy_connections_ended_total m1`: 7,
		} {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s: %s is %v (%t), want %v", role, name, v, ok, want)
			}
		}
		_, everybody := got["vipgen_haproxy_serving"]
		_, own := got["vipgen_haproxy_serving_own"]
		if everybody == own {
			t.Errorf("%s: both metrics, or none: %v", role, got)
		}
		testkit.Equal(t, 0, len(before.Silenced))
	}
}

// Nodes come and go: the number of counted ones is bounded.
func TestSilencedIsBounded(t *testing.T) {
	c := newCrashJob(t)
	for i := range 2 * maxSilenced {
		c.count(fmt.Sprintf("m%d", i), 1)
	}
	c.count("m0", 1)
	if n := len(c.silenced); n != maxSilenced || c.silenced["m0"].Times != 2 {
		t.Errorf("%d names, m0 %+v", n, c.silenced["m0"])
	}
}

// The agent reads the output of the master process of every generation: each reload returns the
// process ID of a new worker that serves.
func TestHardCase29Reload(t *testing.T) {
	daemon.EachGeneration(t, func(t *testing.T, g daemon.Generation) {
		lb := g.NewLoadBalancer(t, []byte("global\n    stats socket /run/haproxy.sock mode 600 level admin expose-fd listeners\n"+
			"defaults\n    mode tcp\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n"+
			"frontend api\n    bind 127.0.0.1:9445\n"), "/run/haproxy.sock")
		m := master{lb.MasterSocket()}
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		seen := map[int]bool{}
		for range 3 {
			worker, err := m.reload(ctx)
			testkit.Must(t, err)
			if now, err := m.processes(ctx); err != nil || now.worker != worker || now.failed != 0 || seen[worker] {
				t.Errorf("worker %d after a reload; seen before: %t; the master reports %+v, %v", worker, seen[worker], now, err)
			}
			seen[worker] = true
		}
	})
}
