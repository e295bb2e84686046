package keepalivedconf

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Read reads a keepalived.conf or a template of one. Problems are what keepalived
// refuses; with any, the Config is incomplete.
func Read(text []byte) (*Config, []Problem) {
	r := &reader{conf: &Config{}}
	masked, template, err := mask(text)
	if err == nil {
		r.conf.Template = template
		r.conf.Blocks, err = parse(masked)
	}
	if err != nil {
		p := Problem{Line: 1, Code: problem.Syntax, Found: err.Error()}
		if at := (*syntaxError)(nil); errors.As(err, &at) {
			p.Line = at.line
		}
		return r.conf, []Problem{p}
	}
	for _, b := range r.conf.Blocks {
		r.block(b)
	}
	r.finish()
	return r.conf, r.problems
}

type reader struct {
	conf     *Config
	version  int // vrrp_version
	problems []Problem
}

// refuse records a value that keepalived refuses.
func (r *reader) refuse(s Statement, code problem.Code, expected string) {
	r.problems = append(r.problems, Problem{s.Line, code, s.Word(0), s.Word(1), expected})
}

// unread records something that is not read.
func (r *reader) unread(s Statement, format string, args ...any) {
	r.conf.Unread = append(r.conf.Unread, Problem{Line: s.Line, Code: problem.Syntax, Found: fmt.Sprintf(format, args...)})
}

// ignored are global settings that do not affect the holder of a VIP.
var ignored = []string{
	"enable_script_security", "script_user", "vrrp_priority", "vrrp_no_swap", "max_auto_priority",
	"vrrp_garp_master_delay", "vrrp_garp_master_repeat", "vrrp_garp_master_refresh",
	"vrrp_garp_lower_prio_delay", "vrrp_garp_lower_prio_repeat", "vrrp_higher_prio_send_advert",
}

func (r *reader) block(b Statement) {
	switch word := b.Word(0); {
	case word == "global_defs":
		r.global(b)
	case word == "vrrp_instance" && (len(b.Words) < 2 || !b.Open):
		r.problems = append(r.problems, Problem{Line: b.Line, Code: problem.Syntax, Field: word, Expected: "vrrp_instance NAME { ... }"})
	case word == "vrrp_instance":
		r.instance(b)
	case !slices.Contains([]string{"track_file", "vrrp_track_file", "vrrp_sync_group"}, word):
		r.unread(b, "block %q is not known", word)
	case len(b.Words) != 2 || !b.Open:
		r.unread(b, "%s: expected one name, and a block", word)
	case word == "vrrp_sync_group":
		r.syncGroup(b)
	default:
		r.file(b)
	}
}

// handlers maps the keywords of a block to the functions that read their statements.
type handlers map[string]func(Statement)

// each passes every statement of a block to its handler, and records the others.
func (r *reader) each(b Statement, known handlers) {
	seen := map[string]bool{}
	for _, s := range b.Body {
		word := s.Word(0)
		read := known[word]
		switch {
		case read == nil:
			r.unread(s, "%q is not known in %s", word, b.Word(0))
			continue
		case seen[word]:
			r.unread(s, "%q is in %s twice", word, b.Word(0))
		case slices.ContainsFunc(s.Words, HasHole):
			r.unread(s, "%s: its value is not known", word)
		}
		seen[word] = true
		read(s)
	}
}

func (r *reader) global(b Statement) {
	known := handlers{
		"router_id": r.word(&r.conf.RouterID), "vrrp_version": r.number(&r.version, 2, 3),
		"vrrp_mcast_group4": r.group, "vrrp_mcast_group6": r.group,
	}
	for _, word := range ignored {
		known[word] = func(Statement) {}
	}
	r.each(b, known)
}

func (r *reader) group(s Statement) {
	var a netip.Addr
	if r.address(&a)(s); a.IsValid() && a.Is4() != strings.HasSuffix(s.Word(0), "4") {
		r.unread(s, "%s: expected an address of that family", s.Word(0))
	} else if a.IsValid() {
		r.conf.Groups = append(r.conf.Groups, a)
	}
}

func (r *reader) file(b Statement) {
	f := File{Name: b.Word(1), Weight: 1}
	r.each(b, handlers{
		"file":      r.word(&f.Path),
		"weight":    func(s Statement) { f.Weight = r.weight(s, s.Words[1:]) },
		"init_file": func(s Statement) { f.Initial = r.weight(s, s.Words[1:]) },
	})
	r.conf.Files = append(r.conf.Files, f)
}

func (r *reader) syncGroup(b Statement) {
	g := SyncGroup{Name: b.Word(1), Block: b}
	r.each(b, handlers{
		"group": func(s Statement) {
			for _, m := range s.Body {
				if len(m.Words) != 1 || m.Open {
					r.unread(m, "expected the name of an instance")
				}
				g.Members = append(g.Members, m.Word(0))
			}
		},
		"track_file": func(Statement) {}, // when all files are known
	})
	r.conf.SyncGroups = append(r.conf.SyncGroups, g)
}

func (r *reader) instance(b Statement) {
	i := Instance{Name: b.Word(1), AdvertMS: 1000, Priority: 100, Block: b}
	r.each(b, handlers{
		"state": func(s Statement) {
			var word string
			r.word(&word)(s)
			if i.Master = word == "MASTER"; !i.Master && word != "BACKUP" {
				r.unread(s, "state %q: expected BACKUP or MASTER", word)
			}
		},
		"nopreempt": func(s Statement) {
			if i.NoPreempt = true; len(s.Words) > 1 || s.Open {
				r.unread(s, "nopreempt: takes no value")
			}
		},
		"version": r.number(&i.Version, 2, 3), "interface": r.word(&i.Interface),
		"virtual_router_id": r.number(&i.RouterID, 1, 255), "priority": r.number(&i.Priority, 1, 255),
		"advert_int": r.milliseconds(&i.AdvertMS),
		"authentication": func(s Statement) {
			r.each(s, handlers{"auth_pass": r.word(&i.Password), "auth_type": func(s Statement) {
				if r.word(&i.AuthType)(s); i.AuthType != "PASS" {
					r.unread(s, "auth_type %q: expected PASS", i.AuthType)
				}
			}})
		},
		"unicast_src_ip": r.address(&i.Source), "unicast_ttl": r.number(&i.TTL, 1, 255),
		"unicast_peer":      func(s Statement) { r.peers(&i, s) },
		"virtual_ipaddress": func(s Statement) { r.vips(&i, s) },
		"track_file":        func(Statement) {}, // when all files are known
	})
	i.Password = vrrp.AdvertisedPassword(i.Password)
	r.conf.Instances = append(r.conf.Instances, i)
}

func (r *reader) peers(i *Instance, b Statement) {
	for _, s := range b.Body {
		a, err := netip.ParseAddr(s.Word(0))
		p := Peer{Address: a}
		ttl := s.Word(1) == "min_ttl" && len(s.Words) == 3
		if ttl {
			p.MinTTL, _ = strconv.Atoi(s.Word(2))
		}
		switch {
		case err != nil || s.Open:
			r.unread(s, "expected the address of a peer")
			continue
		case ttl && (p.MinTTL < 1 || p.MinTTL > 255):
			r.unread(s, "min_ttl %q: expected 1 to 255", s.Word(2))
		case !ttl && len(s.Words) > 1:
			r.unread(s, "expected an address, and min_ttl at most")
		}
		i.Peers = append(i.Peers, p)
	}
}

func (r *reader) vips(i *Instance, b Statement) {
	for _, s := range b.Body {
		more := s.Words[min(1, len(s.Words)):]
		for _, word := range []string{"dev", "label"} {
			if len(more) >= 2 && more[0] == word {
				more = more[2:]
			}
		}
		if len(more) > 0 || s.Open {
			r.unread(s, "expected a VIP, its interface and a label at most")
		}
		word, length, has := strings.Cut(s.Word(0), "/")
		if HasHole(word) {
			r.unread(s, "the VIP is not known")
			continue
		}
		a, err := netip.ParseAddr(word)
		if err != nil {
			r.problems = append(r.problems, Problem{s.Line, problem.BadAddress, b.Word(0), s.Word(0), "an IP address, with or without the length of a prefix"})
			continue
		}
		bits := a.BitLen()
		if has && !HasHole(length) {
			if bits, err = strconv.Atoi(length); err != nil || bits < 0 || bits > a.BitLen() {
				r.problems = append(r.problems, Problem{s.Line, problem.BadNetwork, b.Word(0), s.Word(0), a.String() + " with a prefix length from 0 to " + strconv.Itoa(a.BitLen())})
				continue
			}
		}
		i.VIPs = append(i.VIPs, VIP{netip.PrefixFrom(a, bits), s})
	}
}

// finish evaluates what depends on several
func (r *reader) finish() {
	for n := range r.conf.Instances {
		i := &r.conf.Instances[n]
		if i.Version = cmp.Or(i.Version, r.version, 2); i.IPv6() {
			i.Version = 3
		}
		if i.Version == 3 {
			i.Password = "" // version 3 has none: keepalived ignores it
		}
		i.Tracks = r.tracks(i.Block)
		if at := slices.IndexFunc(r.conf.Groups, func(g netip.Addr) bool { return g.Is4() != i.IPv6() }); at >= 0 && len(i.Peers) == 0 {
			i.Group = r.conf.Groups[at]
		}
	}
	for n := range r.conf.SyncGroups {
		g := &r.conf.SyncGroups[n]
		g.Tracks = r.tracks(g.Block)
	}
}

// tracks reads the trackers of an instance or a sync group. Files may be defined later in
// the text.
func (r *reader) tracks(of Statement) (out []Track) {
	for _, b := range of.Body {
		if b.Word(0) != "track_file" {
			continue
		}
		for _, s := range b.Body {
			t := Track{File: s.Word(0)}
			i := slices.IndexFunc(r.conf.Files, func(f File) bool { return f.Name == t.File })
			switch {
			case i < 0 || s.Open:
				r.unread(s, "track file %q is not defined", t.File)
				continue
			case s.Word(1) == "weight":
				t.Weight = r.weight(s, s.Words[2:])
			case len(s.Words) > 1:
				r.unread(s, "expected a track file, and its weight at most")
			default:
				t.Weight = r.conf.Files[i].Weight
			}
			out = append(out, t)
		}
	}
	return out
}

// word reads the value of a statement with one.
func (r *reader) word(to *string) func(Statement) {
	return func(s Statement) {
		if *to = s.Word(1); len(s.Words) != 2 || s.Open {
			r.unread(s, "%s: expected one value", s.Word(0))
		}
	}
}

// value reads the value of a statement with one; a value that is invalid, or known only
// on the node, is zero.
func value[T any](r *reader, to *T, parse func(string) (T, bool), refuse func(s Statement)) func(Statement) {
	return func(s Statement) {
		var text string
		var ok bool
		r.word(&text)(s)
		if *to, ok = parse(text); !ok {
			*to = *new(T)
			if !HasHole(text) {
				refuse(s)
			}
		}
	}
}

func (r *reader) number(to *int, least, most int) func(Statement) {
	return value(r, to, func(text string) (int, bool) {
		n, err := strconv.Atoi(text)
		return n, err == nil && least <= n && n <= most
	}, func(s Statement) {
		r.refuse(s, problem.BadValue, fmt.Sprintf("a number from %d to %d", least, most))
	})
}

func (r *reader) milliseconds(to *int) func(Statement) {
	return value(r, to, func(text string) (int, bool) {
		n, _ := strconv.ParseFloat(text, 64) // 0 or infinite on error
		return int(math.Round(n * 1000)), n >= 0.01 && n <= 255
	}, func(s Statement) { r.refuse(s, problem.BadTiming, "0.01 to 255 seconds") })
}

func (r *reader) address(to *netip.Addr) func(Statement) {
	return value(r, to, func(text string) (netip.Addr, bool) {
		a, err := netip.ParseAddr(text)
		return a, err == nil
	}, func(s Statement) { r.unread(s, "%s %q: expected an address", s.Word(0), s.Word(1)) })
}

// weight reads a weight, or the initial value of a file.
func (r *reader) weight(s Statement, words []string) int {
	n, err := strconv.Atoi(strings.Join(words, " "))
	if err != nil || n < -254 || n > 254 {
		r.unread(s, "%s: expected a number from -254 to 254", s.Word(0))
		return 0
	}
	return n
}
