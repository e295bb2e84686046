package keepalived

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/keepalived/neighbours"
	"github.com/vipgen/vipgen/agent/keepalived/record"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/tickle"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Files that the job keeps over restarts and reboots, in the one directory on the disk
// that its pod may write to.
const (
	keepDir      = "/etc/keepalived"
	keptSettings = keepDir + "/.vipgen-vrrp.json"
	keptEnd      = keepDir + "/.vipgen-bootstrap-gone"
	// The record of events is there, too: events.FileName.
	// keptQueues goes with a reboot, as the limits do.
	keptQueues = v1alpha1.RunDir + "/keepalived/queues.json"
	keptVIPs   = v1alpha1.RunDir + "/keepalived/vips.json"
)

// Job runs keepalived on a node. It composes parts, each of which owns its state.
type Job struct {
	// Root is where the host's file system is.
	Root string
	// Source has the facts of the node, the other nodes among them.
	Source *facts.Source
	// State is where jobs publish their states.
	State *state.Dir
	// Program is keepalived, looked up in PATH.
	Program string
	Log     *slog.Logger
	// Checks measures the checks of the node; it may be nil.
	Checks *health.Metrics

	loop      *daemon.Debouncer
	decided   atomic.Pointer[decision] // nil before the first
	election  election
	members   *membership.Membership
	bootstrap *bootstrapLifetime // nil elsewhere than on the bootstrap

	checks     *checks
	daemon     *child
	guard      guarding
	vips       storedVIPs
	neighbours *neighbours.Neighbours
	tickler    *tickle.Tickler
	record     *record.Record
	publisher  publisher
}

func (j *Job) below(path string) string { return filepath.Join(j.Root, path) }
