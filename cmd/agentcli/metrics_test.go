package agentcli

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// tasks returns the tasks of all jobs, running or not.
func tasks() (out []task) {
	for _, k := range jobs {
		e := job.Environment{Source: &facts.Source{}}
		if k.Conf != "" {
			e.Source.Nodes, e.Checks = &nodes.Watched{}, health.NewMetrics()
		}
		out = append(out, task{Kind: k, env: e, job: k.New(e)})
	}
	slices.SortFunc(out, func(a, b task) int { return strings.Compare(a.Name, b.Name) })
	return out
}

var described = regexp.MustCompile(`^Desc{fqName: "(.*)", help: "(.*)", constLabels: {}, variableLabels: {(.*)}}$`)

// metricRows returns the rows of the tables of metrics, sorted, by the package that documents
// them: the job that alone serves a metric, else monitor.
func metricRows(t *testing.T) map[string][]string {
	t.Helper()
	type row struct{ labels, help string }
	rows, jobsOf := map[string]row{}, map[string][]string{}
	for _, x := range tasks() {
		to := make(chan *prometheus.Desc, 1000)
		for _, c := range x.metrics() {
			c.Describe(to)
		}
		monitor.Own.Describe(to)
		close(to)
		for d := range to {
			m := described.FindStringSubmatch(d.String())
			if m == nil {
				t.Fatalf("unknown %s", d)
			}
			labels := strings.FieldsFunc(m[3], func(c rune) bool { return c == ',' || c == ' ' })
			for i := range labels {
				labels[i] = "`" + labels[i] + "`"
			}
			r := row{cmp.Or(strings.Join(labels, ", "), "none"), m[2]}
			if before, known := rows[m[1]]; known && before != r {
				t.Errorf("%s: %v and %v", m[1], before, r)
			}
			rows[m[1]] = r
			jobsOf[m[1]] = append(jobsOf[m[1]], "`"+x.Name+"`")
		}
	}
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		page, who := "monitor", strings.Join(jobsOf[name], ", ")+" | "
		switch len(jobsOf[name]) {
		case 1:
			page, who = strings.Trim(jobsOf[name][0], "`"), ""
		case len(tasks()):
			who = "all | "
		}
		out[page] = append(out[page], fmt.Sprintf("| `%s` | %s | %s%s |", name, rows[name].labels, who, rows[name].help))
	}
	return out
}

func TestEveryMetricIsDocumented(t *testing.T) {
	byPage := metricRows(t)
	all := slices.Concat(slices.Collect(maps.Values(byPage))...)
	known := func(m string) bool {
		return slices.ContainsFunc(all, func(r string) bool { return strings.Contains(r, "`"+m) })
	}
	for name, rows := range byPage {
		page := testkit.ReadFile(t, "../../agent/"+name+"/README.md")
		var documented []string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "| `vipgen_") {
				documented = append(documented, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(documented, rows) {
			t.Errorf("the table of metrics in agent/%s/README.md is to be\n%s", name, strings.Join(rows, "\n"))
		}
		for _, m := range regexp.MustCompile(`\bvipgen_\w+`).FindAllString(string(page), -1) {
			if !known(m) {
				t.Errorf("agent/%s/README.md: no such metric: %s", name, m)
			}
		}
	}
	for _, name := range []string{"prometheusrule.yaml", "dashboard.json"} {
		text := testkit.ReadFile(t, "../../templates/manifest/"+name)
		for _, m := range regexp.MustCompile(`\bvipgen_\w+`).FindAllString(string(text), -1) {
			if !known(m + "`") {
				t.Errorf("%s: no such metric: %s", name, m)
			}
		}
	}
}

// Each job has everything that the command line needs, and nothing of another job.
func TestJobs(t *testing.T) {
	names, ports := map[string]bool{}, map[int]bool{}
	root := (&app{}).command()
	for _, k := range jobs {
		port := k.Port(v1alpha1.DefaultPorts)
		if k.Name == "bgp" { // runs on no node that runs keepalived, and so has its port
			ports[port] = false
		}
		if names[k.Name] || ports[port] || port == 0 || k.Probed == "" || k.Summary == nil {
			t.Errorf("%s: %+v", k.Name, k)
		}
		names[k.Name], ports[port] = true, true
		if c, _, err := root.Find([]string{k.Name}); err != nil || c.Name() != k.Name || c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}
