package chaos

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/render"
)

// TestChaos breaks a lab for one round.
func TestChaos(t *testing.T) { breakOnce(t, lab.Demo, 2, Limits{AtOnce: DefaultAtOnce}) }

// TestRoutedChaos breaks a lab whose VIPs routers know by BGP, with the faults of these for a round.
func TestRoutedChaos(t *testing.T) {
	for _, program := range []string{"/usr/lib/frr/bgpd", "/usr/sbin/bird"} {
		if _, err := os.Stat(program); err != nil {
			testkit.CannotRun(t, "it takes Debian's packages frr and bird2")
		}
	}
	breakOnce(t, lab.Racks, 1, Limits{Kinds: []Kind{power, stopContainer, killDaemon, resetSessions, reloadRouter, dropBFD, floodRoutes}, AtOnce: DefaultAtOnce})
}

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
	r := breakOnce(t, lab.Demo, seed, Limits{Kinds: kinds, AtOnce: len(kinds)})
	for _, k := range kinds {
		if r.Faults[k] == 0 && r.Nothing == 0 && len(r.Violations) == 0 {
			t.Errorf("%s did not happen", k)
		}
	}
}

// breakOnce breaks a lab for one round. The slack is for busy machines: the test checks that
// all parts work together, and that no violation is permanent.
func breakOnce(t *testing.T, load func() (*render.Cluster, error), seed uint64, limits Limits) *Result {
	t.Helper()
	testkit.Live(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cluster, err := load()
	testkit.Must(t, err)
	cfg := &Config{
		Cluster: cluster, Dir: t.TempDir(), Seed: seed, Duration: 20 * time.Second,
		Limits: limits, Slack: 20 * time.Second,
		Programs: lab.Programs{Agent: testkit.Agent(t), Speaker: testkit.Speaker(t), CoreDNS: testkit.Tool(t, "coredns")},
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
