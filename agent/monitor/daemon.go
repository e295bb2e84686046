package monitor

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/state"
)

var (
	daemonWanted    = Gauge("vipgen_daemon_wanted", "Whether the daemon should run on this node (1) or not (0).", "daemon")
	daemonUp        = Gauge("vipgen_daemon_up", "Whether the daemon's process runs (1) or not (0).", "daemon")
	daemonRestarts  = Counter("vipgen_daemon_restarts_total", "Starts of the daemon after the first one.", "daemon")
	configApplied   = Counter("vipgen_config_applied_total", "Configurations that the daemon loaded, at a start or by a reload.", "daemon")
	configRefused   = Counter("vipgen_config_refused_total", "Configurations that the daemon's own parser refused.", "daemon")
	configFailed    = Counter("vipgen_config_failed_total", "Configurations that could not be rendered, written or loaded.", "daemon")
	configAppliedAt = Gauge("vipgen_config_applied_timestamp_seconds", "When a configuration was applied last, in seconds since 1970.", "daemon")
	configRefusedAt = Gauge("vipgen_config_refused_timestamp_seconds", "When a configuration was refused or failed last, in seconds since 1970.", "daemon")
	configCurrent   = Gauge("vipgen_config_current", "Whether the latest configuration is in use (1) or an earlier one is (0).", "daemon")
)

// DaemonFamilies are the families of CollectDaemon.
var DaemonFamilies = Families{
	daemonWanted, daemonUp, daemonRestarts, configApplied, configRefused, configFailed,
	configAppliedAt, configRefusedAt, configCurrent,
}

// CollectDaemon sends the metrics of a job's daemon.
func CollectDaemon(to chan<- prometheus.Metric, name string, wanted bool, d *state.Daemon) {
	daemonWanted.PutBool(to, wanted, name)
	daemonUp.PutBool(to, d.PID != 0, name)
	daemonRestarts.Put(to, float64(d.Restarts), name)
	configApplied.Put(to, float64(d.Reloads), name)
	configRefused.Put(to, float64(d.Refused), name)
	configFailed.Put(to, float64(d.Failed), name)
	configAppliedAt.PutTime(to, d.LastReload, name)
	if d.LastRefusal != nil {
		configRefusedAt.PutTime(to, d.LastRefusal.Time, name)
	}
	configCurrent.PutBool(to, d.Problem == "", name)
}
