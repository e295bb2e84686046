package keepalived

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/vipgen/vipgen/agent/monitor"
	"github.com/vipgen/vipgen/agent/state"
)

var (
	takesPart   = monitor.Gauge("vipgen_takes_part", "Whether this node takes part in the elections of VIPs (1) or not (0).")
	leftOut     = monitor.Gauge("vipgen_left_out", "1 for each reason why this node takes no part for VIPs.", "reason")
	vipHeld     = monitor.Gauge("vipgen_vip_held", "Whether the VIP is on an interface of this node (1) or not (0).", onVIP...)
	vipPriority = monitor.Gauge("vipgen_vip_priority", "VRRP priority of this node for the VIP: its base with the points of all terms that are on.", onVIP...)
	vipBase     = monitor.Gauge("vipgen_vip_priority_base", "VRRP priority of this node for the VIP before any term.", onVIP...)
	termOn      = monitor.Gauge("vipgen_vip_term_on", "Whether the term of the VIP's priority is on (1) or off (0).", onTerm...)
	termPoints  = monitor.Gauge("vipgen_vip_term_points", "What the term adds to the VIP's priority while it is on; 0 for a veto, which prevents the node from holding the VIP.", onTerm...)
	vipFault    = monitor.Gauge("vipgen_vip_fault", "Whether a veto prevents this node from holding the VIP (1) or none does (0).", onVIP...)
	vipTaken    = monitor.Counter("vipgen_vip_taken_total", "How often this node became the holder of the VIP.", onVIP...)
	vipLost     = monitor.Counter("vipgen_vip_lost_total", "How often this node ceased to hold the VIP.", onVIP...)
	vipHeldFor  = monitor.Counter("vipgen_vip_held_seconds_total", "For how long this node has held the VIP, in seconds. The sum over all nodes grows by a second each second, less while no node holds the VIP, and more in a split brain.", onVIP...)
	peersOf     = monitor.Gauge("vipgen_vip_peers", "Other nodes that take part for the VIP.", onVIP...)

	clientsKnown = monitor.Gauge("vipgen_vip_clients_known", "Connections of clients to the VIP in the list that its holder sent to this node, which notifies these clients if the holder dies; 0 on the holder.", onVIP...)
	clientsTold  = monitor.Counter("vipgen_vip_clients_told_total", "Connections of clients that this node sent an ACK because a VIP came to it, so that clients which only listen notice that its holder is dead.")

	lateBy = monitor.Counter("vipgen_late_seconds_total", "Sum of the delays of the job's checks of its node, one each second, that were late by 200 ms or more, in seconds: the node was paused, or had no CPU time for the job.")

	guarded   = monitor.Gauge("vipgen_vrrp_guard_in_place", "Whether VRRP packets of hosts outside of this node's groups are dropped before keepalived (1) or not (0).")
	strangers = monitor.Counter("vipgen_vrrp_dropped_total", "VRRP packets with the router ID of a group that were dropped because no member of the group can have sent them.", "interface", "family", "router_id")

	settingsInForce = monitor.Gauge("vipgen_vrrp_settings", "1 for the VRRP settings in force.", "profile", "mode", "version")
	migrationWanted = monitor.Gauge("vipgen_migration_pending", "Whether a migration of this node to other VRRP settings is pending (1) or not (0).")
	migrationReady  = monitor.Gauge("vipgen_migration_ready", "Whether this node could migrate to other VRRP settings now (1) or not (0); there is no value if no migration is pending.")
	migrationAt     = monitor.Gauge("vipgen_migration_planned_timestamp_seconds", "When all nodes migrate, in seconds since 1970; there is no value before all have agreed.")
	migrations      = monitor.Counter("vipgen_migrations_total", "Migrations to other VRRP settings: begun (moved), and rolled back because another node did not migrate (back).", "outcome")
	modeFileRefused = monitor.Counter("vipgen_mode_file_refused_total", "Mode files that were invalid.")
)

// Labels. Prometheus reserves "instance" for the target.
var (
	onVIP  = []string{"vrrp_instance", "vip"}
	onTerm = []string{"vrrp_instance", "vip", "term"}
)

// Describe implements prometheus.Collector.
func (j *Job) Describe(to chan<- *prometheus.Desc) {
	own := monitor.Families{takesPart, leftOut, vipHeld, vipPriority, vipBase, termOn, termPoints, vipFault, peersOf,
		vipTaken, vipLost, vipHeldFor, clientsKnown, clientsTold, lateBy, guarded, strangers,
		settingsInForce, migrationWanted, migrationReady, migrationAt, migrations, modeFileRefused}
	append(own, monitor.DaemonFamilies...).Describe(to)
}

// Collect implements prometheus.Collector with the state published last.
func (j *Job) Collect(to chan<- prometheus.Metric) {
	s := j.publisher.last.Load()
	if s == nil {
		return
	}
	d := s.Daemon
	d.Problem = cmp.Or(s.ClusterProblem, d.Problem)
	monitor.CollectDaemon(to, jobName, s.Wanted, &d)
	takesPart.PutBool(to, s.Wanted)
	for _, why := range slices.Compact(slices.Sorted(slices.Values(s.LeftOut))) {
		leftOut.Put(to, 1, why)
	}
	guarded.PutBool(to, s.Guard.InPlace)
	for _, d := range s.Guard.Dropped {
		strangers.Put(to, float64(d.Packets), d.Interface, d.Family, strconv.Itoa(d.RouterID))
	}
	collectSettings(to, s)
	clientsTold.Put(to, float64(j.tickler.Sent()))
	lateBy.Put(to, j.record.lateness().Seconds())
	for _, i := range s.Instances {
		collectInstance(to, &i)
		n, m, d := j.record.counts(i.VIP, time.Now())
		vipTaken.Put(to, float64(n), i.Name, i.VIP.String())
		vipLost.Put(to, float64(m), i.Name, i.VIP.String())
		vipHeldFor.Put(to, d.Seconds(), i.Name, i.VIP.String())
	}
}

func collectSettings(to chan<- prometheus.Metric, s *state.Keepalived) {
	if v := s.VRRP; v != nil {
		settingsInForce.Put(to, 1, string(v.Profile), string(v.Mode), strconv.Itoa(v.Version))
	}
	m := s.Migration
	migrationWanted.PutBool(to, m != nil)
	if m != nil {
		migrationReady.PutBool(to, m.Ready)
		if m.Agreed {
			migrationAt.PutTime(to, m.At)
		}
	}
	migrations.Put(to, float64(s.Migrations.Migrated), "moved")
	migrations.Put(to, float64(s.Migrations.RolledBack), "back")
	modeFileRefused.Put(to, float64(s.Migrations.Refused))
}

func collectInstance(to chan<- prometheus.Metric, i *state.Instance) {
	vip := i.VIP.String()
	vipHeld.PutBool(to, i.Holds, i.Name, vip)
	vipPriority.Put(to, float64(i.Priority), i.Name, vip)
	vipBase.Put(to, float64(i.Base), i.Name, vip)
	vipFault.PutBool(to, i.Fault, i.Name, vip)
	clientsKnown.Put(to, float64(i.Clients), i.Name, vip)
	peersOf.Put(to, float64(len(i.Peers)), i.Name, vip)
	for _, t := range i.Terms {
		termOn.PutBool(to, t.On, i.Name, vip, t.Name)
		termPoints.Put(to, float64(t.Points), i.Name, vip, t.Name)
	}
}
