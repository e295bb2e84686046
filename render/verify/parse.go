package verify

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/render"
)

// ignored are the global settings that have no say in who holds a VIP.
var ignored = []string{
	"enable_script_security", "vrrp_priority", "vrrp_no_swap",
	"vrrp_garp_master_delay", "vrrp_garp_master_repeat", "vrrp_garp_master_refresh",
	"vrrp_garp_lower_prio_delay", "vrrp_garp_lower_prio_repeat", "vrrp_higher_prio_send_advert",
}

// Parse reads a keepalived.conf. It is strict: a word that it does not know may
// change who holds a VIP, so it is an error.
func Parse(text []byte) (*Config, error) {
	list, err := split(text)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	for _, b := range list {
		if err := c.take(b); err != nil {
			return nil, err
		}
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) take(b block) error {
	if !b.open {
		return b.wrong("%q is no block that is known", b.words[0])
	}
	if b.words[0] == "global_defs" && len(b.words) == 1 {
		return c.global(b)
	}
	if len(b.words) != 2 {
		return b.wrong("%s: expected one name", b.words[0])
	}
	switch b.words[0] {
	case "track_file", "vrrp_track_file":
		return c.file(b)
	case "vrrp_sync_group":
		return c.syncGroup(b)
	case "vrrp_instance":
		return c.instance(b)
	}
	return b.wrong("block %q is not known", b.words[0])
}

func (c *Config) global(b block) error {
	for _, s := range b.body {
		switch {
		case s.words[0] == "router_id":
			id, err := s.value()
			if err != nil {
				return err
			}
			c.RouterID = id
		case s.words[0] == "vrrp_mcast_group4", s.words[0] == "vrrp_mcast_group6":
			group, err := s.address()
			if err == nil && group.Is4() != strings.HasSuffix(s.words[0], "4") {
				err = s.wrong("%s: expected an address of that family", s.words[0])
			}
			if err != nil {
				return err
			}
			c.Groups = append(c.Groups, group)
		case !slices.Contains(ignored, s.words[0]) || s.open:
			return s.wrong("%q is not known in global_defs", s.words[0])
		}
	}
	return nil
}

func (c *Config) file(b block) error {
	f := File{Name: b.words[1], Weight: 1}
	err := b.each(map[string]func(block) error{
		"file":      func(s block) (err error) { f.Path, err = s.value(); return },
		"weight":    func(s block) (err error) { f.Weight, err = s.number(-254, 254); return },
		"init_file": func(s block) (err error) { f.Initial, err = s.number(0, 1); return },
	})
	c.Files = append(c.Files, f)
	return err
}

func (c *Config) syncGroup(b block) error {
	g := SyncGroup{Name: b.words[1]}
	err := b.each(map[string]func(block) error{
		"group": func(s block) error {
			for _, m := range s.body {
				if len(m.words) != 1 || m.open {
					return m.wrong("expected the name of an instance")
				}
				g.Members = append(g.Members, m.words[0])
			}
			return nil
		},
		"track_file": func(s block) (err error) { g.Tracks, err = c.tracks(s); return },
	})
	c.SyncGroups = append(c.SyncGroups, g)
	return err
}

func (c *Config) instance(b block) error {
	i := Instance{Name: b.words[1], AdvertMS: 1000, Priority: 100}
	err := b.each(map[string]func(block) error{
		"state":             i.state,
		"nopreempt":         func(s block) error { i.NoPreempt = true; return s.alone() },
		"version":           func(s block) (err error) { i.Version, err = s.number(2, 3); return },
		"interface":         func(s block) (err error) { i.Interface, err = s.value(); return },
		"virtual_router_id": func(s block) (err error) { i.RouterID, err = s.number(1, 255); return },
		"priority":          func(s block) (err error) { i.Priority, err = s.number(leastPriority, mostPriority); return },
		"advert_int":        func(s block) (err error) { i.AdvertMS, err = s.milliseconds(); return },
		"authentication":    i.authentication,
		"unicast_src_ip":    func(s block) (err error) { i.Source, err = s.address(); return },
		"unicast_ttl":       func(s block) (err error) { i.TTL, err = s.number(1, 255); return },
		"unicast_peer":      i.peers,
		"virtual_ipaddress": i.vip,
		"track_file":        func(s block) (err error) { i.Tracks, err = c.tracks(s); return },
	})
	switch {
	case i.Version == 0 && i.VIP.Addr().Is6():
		i.Version = 3
	case i.Version == 0:
		i.Version = 2
	}
	if i.Version == 3 {
		i.Password = "" // which it has none of: keepalived ignores it
	}
	if at := slices.IndexFunc(c.Groups, func(g netip.Addr) bool { return g.Is4() == i.VIP.Addr().Is4() }); at >= 0 && len(i.Peers) == 0 {
		i.Group = c.Groups[at]
	}
	c.Instances = append(c.Instances, i)
	return err
}

func (i *Instance) state(s block) error {
	word, err := s.value()
	if err == nil && word != "BACKUP" && word != "MASTER" {
		err = s.wrong("state %q: expected BACKUP or MASTER", word)
	}
	i.Master = word == "MASTER"
	return err
}

func (i *Instance) authentication(b block) error {
	return b.each(map[string]func(block) error{
		"auth_type": func(s block) error {
			word, err := s.value()
			if err == nil && word != "PASS" {
				err = s.wrong("auth_type %q: expected PASS", word)
			}
			return err
		},
		"auth_pass": func(s block) error {
			word, err := s.value()
			i.Password = render.Advertised(word)
			return err
		},
	})
}

func (i *Instance) peers(b block) error {
	for _, s := range b.body {
		var p Peer
		var err error
		if p.Address, err = netip.ParseAddr(s.words[0]); err != nil || s.open {
			return s.wrong("expected the address of a peer")
		}
		switch {
		case len(s.words) == 3 && s.words[1] == "min_ttl":
			p.MinTTL, err = strconv.Atoi(s.words[2])
			if err != nil || p.MinTTL < 1 || p.MinTTL > 255 {
				return s.wrong("min_ttl %q: expected 1 to 255", s.words[2])
			}
		case len(s.words) != 1:
			return s.wrong("expected an address, and min_ttl at most")
		}
		i.Peers = append(i.Peers, p)
	}
	return nil
}

func (i *Instance) vip(b block) error {
	if len(b.body) != 1 || b.body[0].open {
		return b.wrong("expected one VIP")
	}
	more := b.body[0].words[1:]
	for _, word := range []string{"dev", "label"} {
		if len(more) >= 2 && more[0] == word {
			more = more[2:]
		}
	}
	if len(more) > 0 {
		return b.body[0].wrong("expected a VIP, its interface and a label at most")
	}
	p, err := netip.ParsePrefix(b.body[0].words[0])
	if err != nil {
		return b.body[0].wrong("%q: expected an address with its prefix length", b.body[0].words[0])
	}
	i.VIP = p
	return nil
}

func (c *Config) tracks(b block) ([]Track, error) {
	var out []Track
	for _, s := range b.body {
		t := Track{File: s.words[0]}
		i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == t.File })
		if i < 0 || s.open {
			return nil, s.wrong("track file %q is not defined", t.File)
		}
		t.Weight = c.Files[i].Weight
		if len(s.words) > 1 {
			var err error
			if t.Weight, err = (block{line: s.line, words: s.words[1:]}).number(-254, 254); err != nil || s.words[1] != "weight" {
				return nil, s.wrong("expected the name of a track file, and its weight from -254 to 254")
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// check is for what one statement alone does not show.
func (c *Config) check() error {
	names := map[string]bool{}
	for _, i := range c.Instances {
		switch {
		case names[i.Name]:
			return fmt.Errorf("two instances are called %s", i.Name)
		case i.RouterID == 0 || i.Interface == "" || !i.VIP.IsValid():
			return fmt.Errorf("instance %s lacks its virtual_router_id, interface or VIP", i.Name)
		case len(i.Peers) > 0 && !i.Source.IsValid():
			return fmt.Errorf("instance %s has unicast peers and no unicast_src_ip", i.Name)
		}
		names[i.Name] = true
	}
	taken := map[string]bool{}
	for _, g := range c.SyncGroups {
		if len(g.Members) == 0 {
			return fmt.Errorf("sync group %s is empty", g.Name)
		}
		for _, m := range g.Members {
			if !names[m] || taken[m] {
				return fmt.Errorf("sync group %s: %s is no instance, or is in two groups", g.Name, m)
			}
			taken[m] = true
		}
	}
	return nil
}

// each hands every statement of the block to what takes it, each word once.
func (b block) each(known map[string]func(block) error) error {
	seen := map[string]bool{}
	for _, s := range b.body {
		take := known[s.words[0]]
		if take == nil || seen[s.words[0]] {
			return s.wrong("%q is not known in %s, or there twice", s.words[0], b.words[0])
		}
		seen[s.words[0]] = true
		if err := take(s); err != nil {
			return err
		}
	}
	return nil
}

func (b block) alone() error {
	if len(b.words) != 1 || b.open {
		return b.wrong("%s: takes no value", b.words[0])
	}
	return nil
}

func (b block) value() (string, error) {
	if len(b.words) != 2 || b.open {
		return "", b.wrong("%s: expected one value", b.words[0])
	}
	return b.words[1], nil
}

func (b block) number(least, most int) (int, error) {
	word, err := b.value()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return 0, b.wrong("%s %q: expected %d to %d", b.words[0], word, least, most)
	}
	return n, nil
}

func (b block) milliseconds() (int, error) {
	word, err := b.value()
	if err != nil {
		return 0, err
	}
	s, err := strconv.ParseFloat(word, 64)
	if err != nil || !(s >= 0.01 && s <= 255) {
		return 0, b.wrong("%s %q: expected 0.01 to 255 seconds", b.words[0], word)
	}
	return int(math.Round(s * 1000)), nil
}

func (b block) address() (netip.Addr, error) {
	word, err := b.value()
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(word)
	if err != nil {
		return a, b.wrong("%s %q: expected an address", b.words[0], word)
	}
	return a, nil
}
