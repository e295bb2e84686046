package keepalived

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"

	"github.com/vipgen/vipgen/agent/trouble"
	"github.com/vipgen/vipgen/agent/urgent"
)

// haste has the process of keepalived that sends adverts run as soon as it wakes:
// one that is late by three adverts is taken for dead by its peers.
type haste struct {
	file    string // has the process ID
	pid     int
	way     urgent.Way // empty while keepalived does not run
	trouble trouble.Trouble
}

// look sees to a process that is new, or that the kernel refused before.
func (h *haste) look(running bool, log *slog.Logger) {
	pid := 0
	if data, err := os.ReadFile(h.file); running && err == nil {
		pid, _ = strconv.Atoi(string(bytes.TrimSpace(data)))
	}
	if pid <= 0 {
		h.pid, h.way = 0, ""
		return
	}
	if pid == h.pid && h.way != urgent.Ordinary {
		return
	}
	before := h.way
	way, err := urgent.Raise(pid)
	if way == "" {
		return // it is gone
	}
	h.pid, h.way = pid, way
	h.trouble.Warn(log, err, "keepalived competes for the cores with everything else: on a busy node it may be late, and lose its VIPs", "keepalived runs ahead of others")
	if way != before {
		log.Info("keepalived has its time on the cores", "by", way)
	}
}
