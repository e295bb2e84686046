package keepalived

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

func TestWhereHeld(t *testing.T) {
	at := netip.MustParseAddr("192.0.2.11")
	for want, i := range map[string]state.Instance{
		"held here":                       {Holds: true},
		"not held here":                   {},
		"held by master-1, priority 68":   {Holder: &state.Holder{Node: "master-1", Address: at, Priority: 68}},
		"held by 192.0.2.11, priority 68": {Holder: &state.Holder{Address: at, Priority: 68}},
	} {
		testkit.Equal(t, want, whereHeld(&i))
	}
}

func TestSettingsRows(t *testing.T) {
	classic, at := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast), time.Date(2026, 5, 2, 3, 0, 0, 0, time.UTC)
	fast := v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	for want, m := range map[string]*state.Migration{
		"VRRP settings|classic/unicast/v2/1s":                                              nil,
		"migrates to|fast/unicast/v3/40ms|not ready|waits for|this node: the disk is full": {Target: fast, WaitsFor: "this node: the disk is full"},
		"migrates to|fast/unicast/v3/40ms|ready|all migrate at 2026-05-02T03:00:00Z":       {Target: fast, Ready: true, Agreed: true, At: at},
		"migrates to|fast/unicast/v3/40ms|ready|waits for|c: its update is not done":       {Target: fast, Ready: true, At: at, WaitsFor: "c: its update is not done"},
		"migrates to|fast/unicast/v3/40ms|ready|now":                                       {Target: fast, Ready: true, Migrating: true},
	} {
		var cells []string
		for _, row := range settingsRows(&state.Keepalived{VRRP: &classic, Migration: m}) {
			for _, cell := range row {
				cells = append(cells, strings.TrimSpace(cell))
			}
		}
		if got := strings.Join(cells, "|"); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestInstances(t *testing.T) {
	vip := netip.MustParsePrefix("192.0.2.2/32")
	_, api := vrrp.PriorityTerms(&v1alpha1.Group{Name: "api", Role: v1alpha1.GroupAPI}, "master")
	_, ingress := vrrp.PriorityTerms(&v1alpha1.Group{Name: "ingress", Role: v1alpha1.GroupIngress}, "worker")
	for _, tt := range []struct {
		name     string
		conf     keepalived.Conf
		on       []string
		held     []netip.Addr
		priority int
		fault    bool
	}{
		{"nothing works", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip, Terms: api}}}, nil, nil, 40, false},
		{"all works", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip, Terms: api}}}, []string{"lb-path", "lb-or-api", "machine-config"}, []netip.Addr{vip.Addr()}, 68, false},
		{"in a sync group", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 40, VIP: vip}},
			SyncGroups: []keepalived.SyncGroup{{Name: "g", Members: []string{"a", "b"}, Terms: api}}}, []string{"lb-path"}, nil, 60, false},
		{"a veto", keepalived.Conf{Instances: []keepalived.Instance{{Name: "a", Priority: 20, VIP: vip, Terms: ingress}}}, []string{"ingress-away"}, nil, 20, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var values []health.TrackValue
			for _, name := range tt.on {
				values = append(values, health.TrackValue{Name: name, Value: 1})
			}
			got := instanceStates(&tt.conf, values, tt.held)[0]
			want := []any{tt.priority, tt.fault, len(tt.held) > 0}
			testkit.Equal(t, want, []any{got.Priority, got.Fault, got.Holds})
		})
	}
}

// keepalived is started without BFD if it supports the option: one that was built without BFD,
// such as OpenShift's, exits at an unknown option.
func TestNoBFD(t *testing.T) {
	t.Parallel()
	for help, want := range map[string]bool{
		"  -P, --vrrp                   Only run with VRRP subsystem\n  -B, --no_bfd                 Don't run BFD subsystem\n": true,
		"  -P, --vrrp                   Only run with VRRP subsystem\n":                                                         false,
		"": false, // it does not even print a version
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "keepalived")
		testkit.Must(t, process.WriteProgram(program, []byte("#!/bin/sh\n[ \"$*\" = --help ] && cat >&2 <<'END'\n"+help+"END\n")))
		nothing := func(context.Context) error { return nil }
		d := newDaemon(t.Context(), program, dir, filepath.Join(dir, "keepalived.conf"), nothing, nothing, slog.New(slog.DiscardHandler))
		testkit.Equal(testkit.In(t, help, d.Process.Command.Args), want, slices.Contains(d.Process.Command.Args, "--no_bfd"))
	}
}

// Lines that keepalived logs for each liveness probe are dropped; all others are logged.
func TestWroteState(t *testing.T) {
	for line, want := range map[string]bool{
		"Mon Nov  3 06:22:17 2025: Printing VRRP data for process(17) on signal\n":  true,
		"Printing parent data for process(16) on signal\n":                          true,
		"Mon Nov  3 06:22:17 2025: Printing VRRP stats for process(17) on signal\n": false,
		"Mon Nov  3 06:22:17 2025: (demo_API_0) Entering MASTER STATE\n":            false,
	} {
		testkit.Equal(testkit.In(t, line), want, wroteState([]byte(line)))
	}
}

// Metrics have the values of the state published last.
func TestMetrics(t *testing.T) {
	j := &Job{tickler: tickle.New(0, slog.New(slog.DiscardHandler)), record: &record{}}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(j)
	metrics := func(s *state.Keepalived) string {
		j.publisher.last.Store(s)
		w := httptest.NewRecorder()
		promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	testkit.Equal(t, "", metrics(nil))
	classic := v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	text := metrics(&state.Keepalived{
		Wanted: true, VRRP: &classic, LeftOut: []string{"why", "why"}, ClusterProblem: "spec: [", Daemon: state.Daemon{Refused: 3},
		Guard:     state.Guard{InPlace: true, Dropped: []state.Dropped{{Interface: "eth0", Family: "IPv4", RouterID: 7, Packets: 9}}},
		Migration: &state.Migration{Target: classic, Ready: true, Agreed: true, At: time.Unix(8, 0)}, Migrations: state.Migrations{Migrated: 1, RolledBack: 2, Refused: 4},
		Instances: []state.Instance{{Name: "a", VIP: apiVIP, Holds: true, Priority: 45, Base: 40, Fault: true, Clients: 6,
			Peers: testkit.Addrs("192.0.2.12", "192.0.2.13"), Terms: []state.Term{{Name: "lb-or-api", Points: 5, On: true}}}},
	})
	const vip = `{vip="192.168.111.5",vrrp_instance="a"} `
	testkit.Contains(t, text, "vipgen_takes_part 1\n", `vipgen_left_out{reason="why"} 1`, `vipgen_config_refused_total{daemon="keepalived"} 3`,
		`vipgen_config_current{daemon="keepalived"} 0`, "vipgen_vrrp_guard_in_place 1\n", `vipgen_vrrp_dropped_total{family="IPv4",interface="eth0",router_id="7"} 9`,
		`vipgen_vrrp_settings{mode="unicast",profile="classic",version="2"} 1`, "vipgen_migration_pending 1\n", "vipgen_migration_ready 1\n",
		"vipgen_migration_planned_timestamp_seconds 8\n", `vipgen_migrations_total{outcome="moved"} 1`, `vipgen_migrations_total{outcome="back"} 2`,
		"vipgen_mode_file_refused_total 4\n", "vipgen_vip_held"+vip+"1\n", "vipgen_vip_priority"+vip+"45\n", "vipgen_vip_priority_base"+vip+"40\n",
		"vipgen_vip_fault"+vip+"1\n", "vipgen_vip_clients_known"+vip+"6\n", "vipgen_vip_peers"+vip+"2\n", "vipgen_vip_taken_total"+vip+"0\n",
		`vipgen_vip_term_on{term="lb-or-api",vip="192.168.111.5",vrrp_instance="a"} 1`, `vipgen_vip_term_points{term="lb-or-api",vip="192.168.111.5",vrrp_instance="a"} 5`)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	testkit.Must(t, err)
	testkit.Empty(t, problems)
}
