package haproxy

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
