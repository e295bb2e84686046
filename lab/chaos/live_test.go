package chaos

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
)

// TestChaos breaks a lab for one round.
func TestChaos(t *testing.T) { breakOnce(t, 2, Limits{AtOnce: DefaultAtOnce}) }

// TestAttacks attacks a lab for a round with every kind of attack.
func TestAttacks(t *testing.T) {
	breakByAll(t, 58, vrrpFlood, mdnsFlood, oddNode, deletedNode, deletedApart, crowd, crashLoop, oddLink)
}

// TestHalfBroken breaks parts of nodes and of the cluster that still look well, of every kind.
func TestHalfBroken(t *testing.T) {
	breakByAll(t, 1, halfAPI, fullEtcd, readOnly, fullRun, noProcesses, oddEvents, spoof, badConfig, freezeAgent)
}

// breakByAll breaks a lab for one round with these kinds of faults, each of which the seed plans. One may find
// nothing to break, such as a daemon that another fault has just ended.
func breakByAll(t *testing.T, seed uint64, kinds ...Kind) {
	t.Helper()
	r := breakOnce(t, seed, Limits{Kinds: kinds, AtOnce: len(kinds)})
	for _, k := range kinds {
		if r.Faults[k] == 0 && r.Nothing == 0 && len(r.Violations) == 0 {
			t.Errorf("%s did not happen", k)
		}
	}
}

// breakOnce breaks a lab for one round. The slack is for busy machines: the test checks that
// all parts work together, and that no violation is permanent.
func breakOnce(t *testing.T, seed uint64, limits Limits) *Result {
	t.Helper()
	testkit.Live(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cluster, err := lab.Demo()
	testkit.Must(t, err)
	cfg := &Config{
		Cluster: cluster, Dir: t.TempDir(), Seed: seed, Duration: 20 * time.Second,
		Limits: limits, Slack: 20 * time.Second,
		Programs: lab.Programs{Agent: testkit.Agent(t), CoreDNS: testkit.Tool(t, "coredns")},
		Log:      slog.New(slog.DiscardHandler),
		Progress: func(at time.Duration, what string) { t.Logf("%8.3fs %s", at.Seconds(), what) },
	}
	p, err := Prepare(cfg)
	testkit.Must(t, err)
	r, err := Run(ctx, cfg, p)
	testkit.Must(t, err)
	var text strings.Builder
	r.Summary(&text)
	r.Report(&text)
	for name, log := range r.Logs {
		text.WriteString("=== " + name + "\n" + log)
	}
	t.Log(text.String())
	testkit.Empty(t, r.Violations)
	planned := 0
	for _, round := range p.Schedule {
		planned += len(round.Faults)
	}
	if len(r.Violations) == 0 && r.total()+r.Nothing != planned {
		t.Errorf("%d faults happened and %d found nothing, of %d", r.total(), r.Nothing, planned)
	}
	if r.Failovers == 0 {
		t.Error("no VIP ever came to a node")
	}
	return r
}
