package manifest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// rule is a rule of a group.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ruleFile is a rule file of Prometheus, and the spec of a PrometheusRule.
type ruleFile struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// rules returns the rules of the PrometheusRule.
func rules(t *testing.T) ruleFile {
	t.Helper()
	var object struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       ruleFile          `json:"spec"`
	}
	text, err := Render(PrometheusRule, Params{})
	if err == nil {
		err = yaml.UnmarshalStrict(text, &object)
	}
	if err != nil || object.APIVersion != "monitoring.coreos.com/v1" || object.Kind != "PrometheusRule" || len(object.Spec.Groups) == 0 {
		t.Fatalf("%v\n%s", err, text)
	}
	return object.Spec
}

func (f ruleFile) all() (out []rule) {
	for _, g := range f.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// promtool runs promtool on files with these values, in their own directory.
func promtool(t *testing.T, files map[string]any, args ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, value := range files {
		data, isText := value.([]byte)
		if !isText {
			var err error
			if data, err = yaml.Marshal(value); err != nil {
				t.Fatal(err)
			}
		}
		testkit.WriteFile(t, filepath.Join(dir, name), data)
	}
	c := exec.Command(testkit.Program(t, "promtool"), args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %q: %v\n%s", args, err, out)
	}
	return out
}

// Each alert fires on a cluster with its condition, and not on a similar one without it.
func TestRules(t *testing.T) {
	testkit.Privileged(t)
	tests := testkit.ReadFile(t, "testdata/rules.test.yaml")
	files := map[string]any{"rules.yaml": rules(t), "tests.yaml": tests}
	testkit.Contains(t, string(promtool(t, files, "check", "rules", "--lint-fatal", "rules.yaml")), "SUCCESS")
	testkit.Contains(t, string(promtool(t, files, "test", "rules", "tests.yaml")), "SUCCESS")
}

// An alert without a test that fires it may never fire.
func TestEveryAlertIsTested(t *testing.T) {
	_, err := Render("nope", Params{})
	testkit.Fails(t, err, "no template of that name")
	data := testkit.ReadFile(t, "testdata/rules.test.yaml")
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string            `json:"alertname"`
				ExpAlerts []json.RawMessage `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	testkit.Must(t, yaml.Unmarshal(data, &tests))
	fires := map[string]bool{}
	for _, x := range tests.Tests {
		for _, a := range x.AlertRuleTest {
			fires[a.Alertname] = fires[a.Alertname] || len(a.ExpAlerts) > 0
		}
	}
	for _, r := range rules(t).all() {
		if !fires[r.Alert] {
			t.Errorf("no test in which %s fires", r.Alert)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
	}
}

// Each alert has a section of the runbooks with its remedy, and each section an alert.
func TestRunbooks(t *testing.T) {
	page := testkit.ReadFile(t, "../../docs/runbooks.md")
	var sections, alerts []string
	for _, m := range regexp.MustCompile(`(?m)^## (Vipgen\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections = append(sections, m[1])
	}
	for _, r := range rules(t).all() {
		alerts = append(alerts, r.Alert)
		if want := "https://github.com/vipgen/vipgen/blob/main/docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: %v, want the runbook %s", r.Alert, r.Annotations, want)
		}
	}
	if !slices.Equal(sections, alerts) {
		t.Errorf("sections of runbooks.md: %v, alerts: %v", sections, alerts)
	}
}

// Nodes that are left out intentionally raise no alert, whatever group or instance is named;
// others do.
func TestIntendedReasons(t *testing.T) {
	all := rules(t).all()
	r := all[slices.IndexFunc(all, func(r rule) bool { return r.Alert == "VipgenNodeLeftOut" })]
	m := regexp.MustCompile(`reason!~"(.*)"\}`).FindStringSubmatch(r.Expr)
	if m == nil {
		t.Fatal(r.Expr)
	}
	// Prometheus anchors patterns; in a string a backslash is doubled.
	intended := regexp.MustCompile("^(?:" + strings.ReplaceAll(m[1], `\\`, `\`) + ")$")
	for _, why := range vrrp.LeftOutReasons() {
		for _, reason := range []string{why.String(), "api: " + why.String(), "demo_API: " + why.String()} {
			testkit.Equal(testkit.In(t, reason), why.Intended(), intended.MatchString(reason))
		}
	}
}

// relabelConfig is a relabeling of a PodMonitor, with the fields that vipgen's use.
type relabelConfig struct {
	Action       string   `json:"action,omitempty"`
	SourceLabels []string `json:"sourceLabels"`
	Regex        string   `json:"regex,omitempty"`
	TargetLabel  string   `json:"targetLabel,omitempty"`
	Replacement  string   `json:"replacement,omitempty"`
}

// The Prometheus operator derives a scrape configuration from each endpoint, with its
// relabelings unchanged. Prometheus' own service discovery applies it to pods.
func TestPodMonitor(t *testing.T) {
	testkit.Privileged(t)
	text, err := Render(PodMonitor, Params{Namespace: "openshift-kni-infra", Monitored: []Monitored{{"haproxy", 9454}, {"keepalived", 9555}}})
	testkit.Must(t, err)
	var object struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   map[string]string `json:"metadata"`
		Spec       struct {
			NamespaceSelector   map[string][]string `json:"namespaceSelector"`
			Selector            struct{}            `json:"selector"`
			PodMetricsEndpoints []struct {
				Interval          string          `json:"interval"`
				Relabelings       []relabelConfig `json:"relabelings"`
				MetricRelabelings []relabelConfig `json:"metricRelabelings"`
			} `json:"podMetricsEndpoints"`
		} `json:"spec"`
	}
	testkit.Must(testkit.In(t, string(text)), yaml.UnmarshalStrict(text, &object))
	if object.Kind != "PodMonitor" || !slices.Equal(object.Spec.NamespaceSelector["matchNames"], []string{"openshift-kni-infra"}) || len(object.Spec.PodMetricsEndpoints) != 2 {
		t.Fatalf("%+v", object)
	}
	pod := func(container, ip string) map[string]any {
		return map[string]any{"targets": []string{ip}, "labels": map[string]string{
			"__meta_kubernetes_pod_container_name": container, "__meta_kubernetes_pod_ip": ip, "__meta_kubernetes_pod_node_name": "master-0"}}
	}
	var relabel []map[string]any
	for _, r := range object.Spec.PodMetricsEndpoints[1].Relabelings {
		c := map[string]any{"source_labels": r.SourceLabels}
		for key, value := range map[string]string{"action": r.Action, "regex": r.Regex, "target_label": r.TargetLabel, "replacement": r.Replacement} {
			if value != "" {
				c[key] = value
			}
		}
		relabel = append(relabel, c)
	}
	config := map[string]any{"scrape_configs": []any{map[string]any{
		"job_name": "vipgen", "relabel_configs": relabel,
		"static_configs": []any{pod("keepalived", "192.0.2.10"), pod("keepalived", "2001:db8::10"), pod("install", "192.0.2.10"), pod("haproxy", "192.0.2.10")},
	}}}
	var out []byte
	var targets []struct {
		Labels map[string]string `json:"labels"`
	}
	// It prints the targets found within the time, which may be none on a busy machine.
	testkit.Await(t, "promtool to find targets", func() bool {
		out = promtool(t, map[string]any{"prometheus.yaml": config}, "check", "service-discovery", "--timeout=2s", "prometheus.yaml", "vipgen")
		testkit.Must(testkit.In(t, string(out)), json.Unmarshal(out, &targets))
		return len(targets) > 0
	})
	var got []string
	for _, x := range targets {
		if len(x.Labels) > 0 { // none: dropped
			got = append(got, x.Labels["instance"]+" "+x.Labels["node"])
		}
	}
	slices.Sort(got)
	if want := []string{"192.0.2.10:9555 master-0", "[2001:db8::10]:9555 master-0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%s", got, want, out)
	}
}

// Every panel has expressions that Prometheus parses, and a type that OpenShift's console supports;
// Grafana has or converts all of them.
func TestDashboard(t *testing.T) {
	testkit.Privileged(t)
	text, err := Render(Dashboard, Params{})
	testkit.Must(t, err)
	var object struct {
		Data map[string]string `json:"data"`
	}
	testkit.Must(t, yaml.Unmarshal(text, &object))
	var board struct {
		Rows []struct {
			Panels []struct {
				Title   string                  `json:"title"`
				Type    string                  `json:"type"`
				Targets []struct{ Expr string } `json:"targets"`
			} `json:"panels"`
		} `json:"rows"`
	}
	testkit.Must(t, json.Unmarshal([]byte(object.Data["vipgen.json"]), &board))
	exprs := ruleGroup{Name: "panels"}
	for _, row := range board.Rows {
		for _, p := range row.Panels {
			if !slices.Contains([]string{"graph", "singlestat", "table"}, p.Type) || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%+v", p)
			}
			for _, target := range p.Targets {
				exprs.Rules = append(exprs.Rules, rule{Record: fmt.Sprintf("panel:%d", len(exprs.Rules)), Expr: target.Expr})
			}
		}
	}
	promtool(t, map[string]any{"panels.yaml": ruleFile{[]ruleGroup{exprs}}}, "check", "rules", "panels.yaml")
}
