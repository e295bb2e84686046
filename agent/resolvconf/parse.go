package resolvconf

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
)

// Config is the relevant content of a resolv.conf.
type Config struct {
	// Nameservers are the name servers in order, link-local ones with their zone.
	Nameservers []netip.Addr
	// Search is the list of search domains.
	Search []string
	// Options are options such as "rotate" or "timeout:2".
	Options []string
}

// Parse parses a resolv.conf like glibc: keywords at the beginning of a line, comments
// with "#" or ";" at the beginning of one, the last "search" or "domain" counts. It
// leaves out what glibc would ignore, and words with other characters than a domain's or
// an option's.
func Parse(data []byte) Config {
	var c Config
	for line := range bytes.Lines(data) {
		text := string(line)
		if text[0] == ' ' || text[0] == '\t' || text[0] == '#' || text[0] == ';' {
			continue
		}
		words := strings.Fields(text)
		if len(words) < 2 {
			continue
		}
		switch words[0] {
		case "nameserver":
			if a, err := netip.ParseAddr(words[1]); err == nil && (a.Zone() == "" || v1alpha1.ValidInterface(a.Zone())) {
				c.Nameservers = append(c.Nameservers, a.Unmap())
			}
		case "search":
			c.Search = keep(words[1:], domainMarks)
		case "domain":
			c.Search = keep(words[1:2], domainMarks)
		case "options":
			c.Options = append(c.Options, keep(words[1:], optionMarks)...)
		}
	}
	return c
}

// Characters allowed besides letters and digits.
const (
	domainMarks = ".-_"
	optionMarks = ":-_"
)

func keep(words []string, marks string) []string {
	return lists.Filter(words, func(w string) bool { return safe(w, marks) })
}

// safe reports whether a word consists of ASCII letters, digits and these marks.
func safe(word, marks string) bool {
	for _, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	return true
}

// Upstreams returns the nameservers other than this node: no loopback, none of the node's
// own addresses, no VIP, each once (hard case 16). Queries to one of those would return
// to the node's own DNS server, directly or through another node's.
func (c Config) Upstreams(own, vips []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range c.Nameservers {
		plain := a.WithZone("")
		// 0.0.0.0 and :: reach this host.
		if plain.IsLoopback() || plain.IsUnspecified() || slices.Contains(own, plain) || slices.Contains(vips, plain) || slices.Contains(out, a) {
			continue
		}
		out = append(out, a)
	}
	return out
}
