package keepalived

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/gate"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Files kept over restarts and reboots, in the one directory on disk that the pod may
// write to.
const (
	keepDir      = "/etc/keepalived"
	keptSettings = keepDir + "/.vipgen-vrrp.json"
	keptEnd      = keepDir + "/.vipgen-bootstrap-gone"
	// The record of events is next to them: events.FileName.
	// keptQueues and keptVIPs end with a reboot, as limits and addresses do.
	keptQueues = v1alpha1.RunDir + "/keepalived/queues.json"
	keptVIPs   = v1alpha1.RunDir + "/keepalived/vips.json"
)

// Job runs keepalived on a node. Each of its parts owns its state.
type Job struct {
	// Root is the root of the host's file system.
	Root string
	// Source provides the facts of this node and of the others.
	Source *facts.Source
	// State is the directory where jobs publish their states.
	State *state.Dir
	// Program is the keepalived binary, looked up in PATH.
	Program string
	Log     *slog.Logger
	// Checks counts the health checks of the node; it may be nil.
	Checks *health.Metrics

	loop      *daemon.Debouncer
	decided   atomic.Pointer[decision] // nil before the first decision
	settings  settingsMigration
	members   *membership.Membership
	bootstrap *gate.Lifetime // nil except on the bootstrap

	checks     *gate.Checks
	files      *health.TrackFiles
	daemon     *child
	guard      guardState
	vips       storedVIPs
	neighbours *neighbours.Neighbours
	tickler    *tickle.Tickler
	record     *record
	publisher  publisher
	wasStale   bool // at the last observe
}

func (j *Job) below(path string) string { return filepath.Join(j.Root, path) }
