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

// silentServers are those that do not answer at the level of TCP any more, because their
// node is gone or cannot be reached. Those that refuse are none: an API server that shuts
// down takes no connections at the end, and finishes what it has.
//
// After a reload or a start of HAProxy all count as up until their first check, which takes
// a server out if it fails. One that was silent before goes on being so until then: it does
// not fall silent anew.
//
// Where all are silent there are none: it may be this node that nobody reaches, and no
// other server is better.
func silentServers(servers []server, before []string) (silent []string) {
	// On compute nodes there is one backend, which is checked so.
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

// part ends the connections to servers that have become silent, so that clients come back
// at once, and reach another: those that only listen would wait until keep-alive finds it.
func (j *Job) part(ctx context.Context, silent []string) {
	fresh := slices.DeleteFunc(slices.Clone(silent), func(name string) bool { return slices.Contains(j.silent, name) })
	j.silent = silent
	for _, name := range fresh {
		ended, err := j.master.endSessions(ctx, name)
		j.Log.Warn("a server is silent: its connections are ended", "server", name, "connections", ended, "error", err)
		j.count(name, ended)
	}
}

// maxSilenced bounds how many names are counted: nodes come and go.
const maxSilenced = 100

// count notes that a server fell silent, for what is published. What was published before
// is not changed.
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
	// session is a line of the answer to "show sess": its ID and its server.
	session = lazy.Regexp(`(?m)^(0x[0-9a-f]+): .* be=(?:api-servers|listening) srv=(\S+) `)
)

// endSessions ends all sessions to a server and says how many, those of workers from
// before a reload too. These know of their sessions alone: "shutdown sessions server"
// is refused there.
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
				break // it goes on being so
			}
			ended++
		}
	}
	return ended, errors.Join(errs...)
}
