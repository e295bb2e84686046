package bench

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/client"
	"github.com/vipgen/vipgen/lab/report"
)

// TestRun benchmarks three scenarios with vipgen's cluster and the reference, and checks only
// what holds on any machine.
func TestRun(t *testing.T) {
	testkit.Live(t)
	scenarios, err := Choose(Scenarios(time.Second), []string{"power-loss", "planned-stop"})
	testkit.Must(t, err)
	for i := range scenarios {
		scenarios[i].Limit = settling // the machine may be busy with other tests
	}
	cfg := config(t)
	// The smallest cluster whose VIP moves: both clusters run at once, and the reference's
	// checks, a shell and curl each second, keep two slow cores busy with five nodes.
	cfg.Cluster.Replicas = map[string]int{v1alpha1.RoleMaster: 2, v1alpha1.RoleWorker: 1}
	cfg.Runs, cfg.Scenarios, cfg.Clients = 1, scenarios, 3
	for _, p := range Profiles() {
		if p.Name == "fast" || p.Name == referenceName {
			cfg.Profiles = append(cfg.Profiles, p)
		}
	}
	// Long enough for a busy machine: the settled cluster of the reference takes half a minute,
	// and its idle watches almost a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	r, err := Run(ctx, *cfg)
	testkit.Must(t, err)
	if r.Reference != referenceName || len(r.Scenarios) != len(scenarios) {
		t.Fatalf("the report has reference %q and %d scenarios", r.Reference, len(r.Scenarios))
	}
	for _, s := range r.Scenarios {
		for _, result := range s.Results {
			t.Run(s.Name+"/"+result.Profile, func(t *testing.T) {
				if len(result.Runs) != 1 {
					t.Fatalf("%d runs", len(result.Runs))
				}
				checkRun(t, s, result.Runs[0])
			})
		}
	}
	for name, write := range map[string]func(*strings.Builder) error{
		"table": func(b *strings.Builder) error { return r.WriteTable(b) },
		"JSON":  func(b *strings.Builder) error { return r.WriteJSON(b) },
		"HTML":  func(b *strings.Builder) error { return r.WriteHTML(b) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil || !strings.Contains(b.String(), "planned stop of keepalived") {
			t.Errorf("%s: %v, %d bytes", name, err, b.Len())
		}
	}
	if left, err := os.ReadDir(cfg.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// checkRun checks that a run has results, and ends with answers.
func checkRun(t *testing.T, s report.Scenario, run report.Run) {
	t.Helper()
	if run.Error != "" {
		t.Fatal(run.Error)
	}
	if len(run.Answers) == 0 || !run.Answers[0].OK || !run.Answers[len(run.Answers)-1].OK {
		t.Errorf("the client got no answers at first, or at last: %+v, %+v", run.Answers, run.Events)
	}
	if run.Asked < warm+enough || run.Lost >= run.Asked {
		t.Errorf("%d of %d requests lost", run.Lost, run.Asked)
	}
	if run.Fault <= 0 || !slices.ContainsFunc(run.Events, func(e report.Event) bool { return e.Text == ended && e.At > run.Fault }) {
		t.Errorf("it did not happen, or does not end: %+v", run.Events)
	}
	checkClients(t, run.Clients)
	nodes := map[string]bool{}
	for _, span := range run.Spans {
		if span.VIP == s.VIP {
			nodes[span.Node] = true
		}
	}
	if s.Name == "power-loss" && len(nodes) < 2 {
		t.Errorf("the VIP has not moved: %+v", run.Spans)
	}
}

// checkClients checks that all kinds of clients took part everywhere.
func checkClients(t *testing.T, all []report.Client) {
	t.Helper()
	var got []string
	for _, c := range all {
		got = append(got, c.Place+": "+c.Kind)
		if c.Count != 3 || c.Longest <= 0 || c.Stuck > 0 {
			t.Errorf("%+v", c)
		}
	}
	var want []string
	for _, place := range []string{"control plane", "workers", "outside"} {
		for _, kind := range []string{client.Watch, client.Election, client.Heartbeat} {
			want = append(want, place+": "+kind)
		}
	}
	testkit.Equal(t, want, got)
}

// config returns the configuration of a benchmark of the demo cluster.
func config(t *testing.T) *Config {
	t.Helper()
	demo, err := lab.Demo()
	testkit.Must(t, err)
	return &Config{
		Cluster: demo, Dir: t.TempDir(), Programs: lab.Programs{Agent: testkit.Agent(t), CoreDNS: testkit.Tool(t, "coredns")},
		Log:      slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Progress: func(line string) { t.Log(line) },
	}
}

// TestRunRouted measures power loss and planned stop of a node whose routers know the VIPs by BGP: the figures
// are those of connections to this node, and others are asked at the same time.
func TestRunRouted(t *testing.T) {
	testkit.Live(t)
	for _, program := range []string{"/usr/lib/frr/bgpd", "/usr/sbin/bird"} {
		if _, err := os.Stat(program); err != nil {
			testkit.CannotRun(t, "it takes Debian's packages frr and bird2")
		}
	}
	scenarios, err := Choose(Scenarios(time.Second), []string{"power-loss", "keepalived-crash", "planned-stop"})
	testkit.Must(t, err)
	cfg := config(t)
	cfg.Programs.Speaker = testkit.Speaker(t)
	cfg.Racks, err = lab.Racks()
	testkit.Must(t, err)
	cfg.Runs, cfg.Scenarios = 1, scenarios
	cfg.Profiles = slices.DeleteFunc(Profiles(), func(p Profile) bool { return p.Name != RoutedName })
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	r, err := Run(ctx, *cfg)
	testkit.Must(t, err)
	for _, s := range r.Scenarios {
		result := s.Results[0]
		if s.Name == "keepalived-crash" {
			if result.NotApplicable == "" || len(result.Runs) > 0 {
				t.Errorf("%s ran: %+v", s.Name, result)
			}
			continue
		}
		if len(result.Runs) != 1 || result.Runs[0].Error != "" {
			t.Fatalf("%s: %+v", s.Name, result)
		}
		run := result.Runs[0]
		if run.Others == nil || run.Others.Asked < warm || run.Asked < warm+enough {
			t.Errorf("%s: %d requests to the affected node, to others %+v", s.Name, run.Asked, run.Others)
		}
		if s.Name == "power-loss" && run.Lost == 0 {
			t.Errorf("power loss of the node lost no request of those to it: %+v", run.Others)
		}
	}
}
