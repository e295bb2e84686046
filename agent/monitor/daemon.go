package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Daemon is what a job says about the daemon that it runs. All of its metrics
// have the daemon's name.
type Daemon struct {
	Name string
	// Wanted says that the daemon is to run, Up that it does.
	Wanted, Up bool
	// Restarts, Applied, Refused and Failed count since the job started: starts of
	// the daemon after the first, configurations that it was told to read, those
	// that it would not have, and those that failed in another way.
	Restarts, Applied, Refused, Failed int
	// AppliedAt and RefusedAt are when that happened last; RefusedAt is for both
	// Refused and Failed.
	AppliedAt, RefusedAt time.Time
	// Current says that the latest configuration is the one that runs.
	Current bool
}

var (
	daemonWanted    = Gauge("vipgen_daemon_wanted", "Whether the daemon is to run on this node (1) or not (0).", "daemon")
	daemonUp        = Gauge("vipgen_daemon_up", "Whether the daemon's process runs (1) or not (0).", "daemon")
	daemonRestarts  = Counter("vipgen_daemon_restarts_total", "Starts of the daemon after the first one.", "daemon")
	configApplied   = Counter("vipgen_config_applied_total", "Configurations that the daemon was told to read, by a start or a reload.", "daemon")
	configRefused   = Counter("vipgen_config_refused_total", "Configurations that the daemon's own parser refused.", "daemon")
	configFailed    = Counter("vipgen_config_failed_total", "Configurations that could not be rendered, written or loaded.", "daemon")
	configAppliedAt = Gauge("vipgen_config_applied_timestamp_seconds", "When a configuration was applied last, in seconds since 1970.", "daemon")
	configRefusedAt = Gauge("vipgen_config_refused_timestamp_seconds", "When a configuration was refused or failed last, in seconds since 1970.", "daemon")
	configCurrent   = Gauge("vipgen_config_current", "Whether the latest configuration is the one that runs (1) or an earlier one stays (0).", "daemon")
)

// DaemonFamilies are those of Daemon.
var DaemonFamilies = Families{
	daemonWanted, daemonUp, daemonRestarts, configApplied, configRefused, configFailed,
	configAppliedAt, configRefusedAt, configCurrent,
}

// Collect hands the metrics over.
func (d Daemon) Collect(to chan<- prometheus.Metric) {
	daemonWanted.PutBool(to, d.Wanted, d.Name)
	daemonUp.PutBool(to, d.Up, d.Name)
	daemonRestarts.Put(to, float64(d.Restarts), d.Name)
	configApplied.Put(to, float64(d.Applied), d.Name)
	configRefused.Put(to, float64(d.Refused), d.Name)
	configFailed.Put(to, float64(d.Failed), d.Name)
	configAppliedAt.PutTime(to, d.AppliedAt, d.Name)
	configRefusedAt.PutTime(to, d.RefusedAt, d.Name)
	configCurrent.PutBool(to, d.Current, d.Name)
}
