package keepalived

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/supervise"
)

// scheduling raises the keepalived process that sends adverts to real-time priority: with a
// delay of three adverts peers take it for dead.
type scheduling struct {
	file    string // holds the process ID
	log     *slog.Logger
	pid     int
	policy  supervise.Scheduling // empty while keepalived does not run
	failing logging.Transitions
}

// poll raises the priority of a new process, or of one for which it failed before.
func (h *scheduling) poll(running bool) {
	pid := 0
	if data, err := os.ReadFile(h.file); running && err == nil {
		pid, _ = strconv.Atoi(string(bytes.TrimSpace(data)))
	}
	if pid <= 0 {
		h.pid, h.policy = 0, ""
		return
	}
	if pid == h.pid && h.policy != supervise.Ordinary {
		return
	}
	before := h.policy
	policy, err := supervise.RaiseScheduling(pid)
	if policy == "" {
		return // the process ended
	}
	h.pid, h.policy = pid, policy
	h.failing.Warn(h.log, err, "keepalived runs without real-time scheduling: on a busy node it may be late, and lose its VIPs", "keepalived runs with real-time scheduling")
	if policy != before {
		h.log.Info("keepalived scheduling policy set", "by", policy)
	}
}
