package haproxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/lazy"
)

// silentServers returns the servers that do not answer at the TCP level, because their
// node is gone or unreachable. Servers that refuse are none: an API server that shuts
// down accepts no connections at the end, and finishes the existing ones.
//
// After a reload or start all servers count as up until their first check, which takes a
// failed one out. A server that was silent before stays silent until then, and does not
// become silent anew.
//
// If all are silent, none is returned: this node itself may be unreachable, and no other
// server is better.
func silentServers(servers []server, before []string) (silent []string) {
	// Compute nodes have only this backend.
	checked := apiServers
	if slices.ContainsFunc(servers, func(s server) bool { return s.backend == listening }) {
		checked = listening
	}
	others := false
	for _, s := range servers {
		switch {
		case s.backend != checked:
		case strings.HasPrefix(s.status, "DOWN") && s.check == "L4TOUT", s.check == unchecked && slices.Contains(before, s.name):
			silent = append(silent, s.name)
		default:
			others = true
		}
	}
	if !others {
		return nil
	}
	return silent
}

// endSilent ends the connections to servers that became silent, so that clients reconnect
// at once to another one: clients that only listen would wait for keep-alive.
func (j *Job) endSilent(ctx context.Context, silent []string) {
	fresh := slices.DeleteFunc(slices.Clone(silent), func(name string) bool { return slices.Contains(j.silent, name) })
	j.silent = silent
	for _, name := range fresh {
		ended, err := j.master.endSessions(ctx, name)
		j.Log.Warn("connections to a silent server ended", "server", name, "connections", ended, "error", err)
		j.count(name, ended)
	}
}

// maxSilenced bounds the number of counted names: nodes come and go.
const maxSilenced = 100

// count counts a silent server. The published map is replaced, not modified.
func (j *Job) count(name string, ended int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := maps.Clone(j.silenced)
	if all == nil {
		all = map[string]state.Silenced{}
	}
	if s, known := all[name]; known || len(all) < maxSilenced {
		all[name] = state.Silenced{Times: s.Times + 1, Connections: s.Connections + ended}
	}
	j.silenced = all
}

var (
	anyWorker = lazy.Regexp(`(?m)^(\d+) +worker `)
	// session matches a line of "show sess" whose connection to its server is established: its ID
	// and its server. State 8 of the server's side is SC_ST_EST (HAProxy, sc-t.h; up to 2.5
	// SI_ST_EST of stream_interface-t.h).
	session = lazy.Regexp(`(?m)^(0x[0-9a-f]+): .* be=(?:api-servers|listening) srv=(\S+) .* (?:scb|s1)=\[8,`)
)

// endSessions ends all sessions that are connected to a server and returns their number,
// including those of workers from before a reload. Each worker knows only its own sessions, and
// old ones refuse "shutdown sessions server". HAProxy retries those that are not connected yet on
// another server.
func (m master) endSessions(ctx context.Context, server string) (ended int, err error) {
	text, err := ask(ctx, m.socket, "show proc")
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, worker := range anyWorker().FindAllStringSubmatch(text, -1) {
		to := "@!" + worker[1] + " "
		list, err := ask(ctx, m.socket, to+"show sess")
		errs = append(errs, err)
		for _, s := range session().FindAllStringSubmatch(list, -1) {
			if s[2] != server {
				continue
			}
			if _, err := ask(ctx, m.socket, to+"shutdown session "+s[1]); err != nil {
				errs = append(errs, err)
				break // the next ones would fail, too
			}
			ended++
		}
	}
	return ended, errors.Join(errs...)
}
