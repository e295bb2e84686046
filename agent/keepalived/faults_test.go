package keepalived

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// An invalid file keeps the last good configuration in force, also over a restart of the agent;
// a corrected one is applied.
func TestBrokenFiles(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	good := clusterConfig(t)
	tests := []struct {
		name, path string
		bad        []byte
		good       []byte
		problem    func(state.Keepalived) string
	}{
		{"cluster.yaml that is no YAML", v1alpha1.ClusterConfigPath, []byte("spec: ["), good, func(s state.Keepalived) string { return s.ClusterProblem }},
		{"cluster.yaml with a mistake", v1alpha1.ClusterConfigPath, bytes.Replace(good, []byte("virtualRouterID: 97"), []byte("virtualRouterID: 0"), 1), good,
			func(s state.Keepalived) string { return s.ClusterProblem }},
		{"cluster.yaml of another cluster", v1alpha1.ClusterConfigPath, bytes.Replace(good, []byte("domain: demo.example.com"), []byte("domain: other.example.com"), 1), good,
			func(s state.Keepalived) string { return s.ClusterProblem }},
		{"a template that does not execute", v1alpha1.KeepalivedTemplate, []byte("{{ .Nothing }}"), []byte(keepalived.Template),
			func(s state.Keepalived) string { return s.Problem }},
		{"a template that keepalived refuses", v1alpha1.KeepalivedTemplate, []byte(strings.ReplaceAll(keepalived.Template, "virtual_router_id", "frobnicate")), []byte(keepalived.Template),
			func(s state.Keepalived) string { return s.Problem }},
	}
	c := newCluster(t)
	c.controlPlane(2)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			holder := c.holder(c.all()...)
			n := c.nodes[holder]
			before := n.awaitState("it runs", running)
			conf := testkit.ReadFile(t, n.Path(v1alpha1.KeepalivedConf))
			n.Write(tt.path, tt.bad)
			n.awaitState("what is wrong", func(s state.Keepalived) bool { return tt.problem(s) != "" })
			c.holder(holder)
			if s, _ := n.state(); s.PID != before.PID {
				t.Error("keepalived was started again")
			}
			n.agent.Kill()
			c.holder(c.others(holder)...)
			n.start()
			n.awaitState("it runs, and what is wrong", func(s state.Keepalived) bool { return s.PID != 0 && tt.problem(s) != "" })
			for _, other := range c.others(holder) {
				c.nodes[other].agent.Stop()
			}
			c.holder(holder)
			if now, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf)); err != nil || !bytes.Equal(now, conf) {
				t.Errorf("the configuration is not the last good one: %v\n%s", err, now)
			}
			for _, other := range c.others(holder) {
				c.nodes[other].start()
			}
			n.Write(tt.path, tt.good)
			n.awaitState("all is well", func(s state.Keepalived) bool { return tt.problem(s) == "" && running(s) })
		})
	}
}

// A change of cluster.yaml is applied by a reload on every node; a file rewritten with the same
// content changes nothing.
func TestClusterConfigChanges(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	holder := c.holder(c.all()...)
	n := c.nodes[holder]
	before := n.awaitState("it runs", running)
	good := clusterConfig(t)
	n.Write(v1alpha1.ClusterConfigPath, good)
	changed := bytes.Replace(good, fmt.Appendf(nil, "advertIntervalMS: %d", v1alpha1.FastIntervalMS), []byte("advertIntervalMS: 100"), 1)
	for _, name := range c.all() {
		c.nodes[name].Write(v1alpha1.ClusterConfigPath, changed)
	}
	var after state.Keepalived
	for _, name := range c.all() {
		s := c.nodes[name].awaitState("the new interval", func(s state.Keepalived) bool {
			conf, err := os.ReadFile(c.nodes[name].Path(v1alpha1.KeepalivedConf))
			return err == nil && strings.Contains(string(conf), "advert_int 0.1") && s.VRRP.AdvertIntervalMS == 100 &&
				(name != holder || s.Reloads > before.Reloads)
		})
		if name == holder {
			after = s
		}
	}
	if after.PID != before.PID || after.Reloads != before.Reloads+1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	c.holder(holder)
}
