package mdns

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/lists"
)

func logChange(log *slog.Logger, before, now state.MDNS) {
	if now.Announced != before.Announced || now.Why != before.Why || now.Interface != before.Interface || !slices.Equal(now.Addresses, before.Addresses) {
		level := slog.LevelInfo
		args := []any{"name", now.Name, "announced", now.Announced}
		if now.Announced {
			args = append(args, "interface", now.Interface, "addresses", now.Addresses)
		} else {
			args = append(args, "why", now.Why)
		}
		if now.Conflict != nil {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "mDNS name changed", args...)
	}
	if now.Problem != before.Problem && now.Problem != "" {
		log.Warn("mDNS discovery impaired", "problem", now.Problem)
	}
	if found, lost, moved := compare(before.Hosts, now.Hosts); len(found)+len(lost)+len(moved) > 0 {
		args := []any{"hosts", len(now.Hosts)}
		for _, x := range []struct {
			what  string
			hosts []string
		}{{"found", found}, {"lost", lost}, {"moved", moved}} {
			if len(x.hosts) > 0 {
				args = append(args, x.what, lists.Summarize(x.hosts, 5, ", "))
			}
		}
		log.Info("hosts on the link changed", args...)
	}
}

// compare returns the hosts that were found, lost, or changed addresses (moved).
func compare(before, now []state.Host) (found, lost, moved []string) {
	old := make(map[string]state.Host, len(before))
	for _, h := range before {
		old[h.Name] = h
	}
	for _, h := range now {
		was, ok := old[h.Name]
		delete(old, h.Name)
		switch {
		case !ok:
			found = append(found, text(h))
		case !slices.Equal(was.Addresses, h.Addresses):
			moved = append(moved, text(h))
		}
	}
	for _, h := range before {
		if _, ok := old[h.Name]; ok {
			lost = append(lost, h.Name)
		}
	}
	return found, lost, moved
}

func text(h state.Host) string { return fmt.Sprint(h.Name, h.Addresses) }
