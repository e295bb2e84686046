package importer

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/blocks"
)

// section is one of haproxy.cfg; its body are its lines.
type section struct{ blocks.Statement }

// kinds of sections that HAProxy knows.
var sectionKinds = []string{"global", "defaults", "frontend", "backend", "listen", "peers", "resolvers", "userlist",
	"mailers", "program", "http-errors", "ring", "cache", "fcgi-app", "log-forward"}

// haproxyConf is what a haproxy.cfg, or a node template of one, says. Ports that
// only the node knows are 0.
type haproxyConf struct {
	file string
	// main is the port of the frontend of the API servers, api theirs, ready that
	// of HAProxy's own health.
	main, api, ready             int
	mainLine, apiLine, readyLine int
	sections                     []section
	behind                       string // the backend of the API servers
}

func (h *haproxyConf) at(line int) Place { return Place{h.file, line} }

// parseHAProxy reads a haproxy.cfg, rendered or a template.
func parseHAProxy(file string, text []byte) (*haproxyConf, problem.List) {
	h := &haproxyConf{file: file}
	r := &confReader{file: file}
	masked, _, err := blocks.Mask(text)
	if err != nil {
		r.refuse(err, "a haproxy.cfg")
		return h, r.list
	}
	line := 0
	for s := range strings.Lines(masked) {
		line++
		text, _, _ := strings.Cut(s, "#")
		words := strings.Fields(text)
		switch {
		case len(words) == 0 || blocks.OnlyHoles(words):
		case slices.Contains(sectionKinds, words[0]):
			h.sections = append(h.sections, section{blocks.Statement{Line: line, Words: words}})
		case len(h.sections) == 0:
			r.add(line, problem.Syntax, "", "a line before the first section", "a section of haproxy.cfg, such as global or defaults")
			return h, r.list
		default:
			last := &h.sections[len(h.sections)-1]
			last.Body = append(last.Body, blocks.Statement{Line: line, Words: words})
		}
	}
	if len(h.sections) == 0 {
		r.add(1, problem.Syntax, "", "no section", "a haproxy.cfg")
	}
	h.ports(r)
	return h, r.list
}

// ports finds those of the API's frontend and backend, and of HAProxy's health.
func (h *haproxyConf) ports(r *confReader) {
	for _, s := range h.sections {
		if s.Words[0] == "backend" || s.Words[0] == "listen" {
			for _, l := range s.Body {
				if l.Word(0) == "server" && len(l.Words) > 2 && h.behind == "" {
					h.behind = name(s)
					h.api, h.apiLine = r.port(l.Line, "server", l.Word(2)), l.Line
				}
			}
		}
	}
	for _, s := range h.sections {
		bind, at := 0, 0
		for _, l := range s.Body {
			if l.Word(0) == "bind" && at == 0 {
				bind, at = r.port(l.Line, "bind", l.Word(1)), l.Line
			}
		}
		// The first one counts: later ones are somebody's own.
		switch role := s.role(h.behind); {
		case role == roleAPI && h.mainLine == 0:
			h.main, h.mainLine = bind, at
		case role == roleReady && h.readyLine == 0:
			h.ready, h.readyLine = bind, at
		}
	}
}

// name is that of a section.
func name(s section) string {
	if len(s.Words) < 2 {
		return ""
	}
	return s.Words[1]
}

// What sections are for.
const (
	roleAPI   = "API"   // in front of the API servers
	roleReady = "ready" // HAProxy's own health
	roleStats = "stats" // a page of statistics
)

// role is what a section that listens is for; behind is the backend of the API
// servers, "" where a template names none.
func (s section) role(behind string) string {
	for _, l := range s.Body {
		switch {
		case l.Word(0) == "monitor-uri":
			return roleReady
		case l.Word(0) == "stats" && l.Word(1) == "enable":
			return roleStats
		}
	}
	for _, l := range s.Body {
		if l.Word(0) == "default_backend" && (behind == "" || l.Word(1) == behind) || s.Words[0] == "listen" && behind != "" && name(s) == behind {
			return roleAPI
		}
	}
	return ""
}

// port is that of an address such as ":::9445", "*:9445" or "192.0.2.1:6443"; 0 if
// only the node knows it.
func (r *confReader) port(line int, field, address string) int {
	at := strings.LastIndexByte(address, ':')
	if blocks.HasHole(address[at+1:]) || at < 0 && blocks.HasHole(address) || strings.HasPrefix(address, "/") || strings.HasPrefix(address, "unix@") {
		return 0
	}
	n, err := strconv.Atoi(address[at+1:])
	if at < 0 || err != nil || n < 1 || n > 65535 {
		r.add(line, problem.BadValue, field, "no port", "an address with a port, such as :::9445")
		return 0
	}
	return n
}

func (h *haproxyConf) claim(e *evidence) {
	for _, p := range []struct {
		name       string
		port, line int
	}{{"haproxy", h.main, h.mainLine}, {"api", h.api, h.apiLine}, {"haproxyReady", h.ready, h.readyLine}} {
		if p.port != 0 {
			claimed(e.ports, p.name, p.port, h.at(p.line), byConf)
		}
	}
}
