package keepalived

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/supervise"
)

// scheduling has the process of keepalived that sends adverts run as soon as it wakes:
// one that is late by three adverts is taken for dead by its peers.
type scheduling struct {
	file    string // has the process ID
	log     *slog.Logger
	pid     int
	policy  supervise.Scheduling // empty while keepalived does not run
	failing logging.Transitions
}

// poll raises the priority of a process that is new, or that the kernel refused before.
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
		return // it is gone
	}
	h.pid, h.policy = pid, policy
	h.failing.Warn(h.log, err, "keepalived competes for the cores with everything else: on a busy node it may be late, and lose its VIPs", "keepalived runs ahead of others")
	if policy != before {
		h.log.Info("keepalived scheduling policy set", "by", policy)
	}
}
