package resolvconf

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Config is what a resolv.conf says, as far as the agent has a use for it.
type Config struct {
	// Nameservers in their order, link-local ones with their zone.
	Nameservers []netip.Addr
	// Search is the list of domains to look names up in.
	Search []string
	// Options such as "rotate" or "timeout:2".
	Options []string
}

// Parse reads a resolv.conf as glibc does: a keyword at the beginning of a
// line, comments from "#" or ";" at the beginning of one, the last of "search"
// and "domain" counts. It leaves out what glibc would not understand, and words
// that could be anything but a domain or an option.
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

// Marks that a word may have besides letters and digits.
const (
	domainMarks = ".-_"
	optionMarks = ":-_"
)

func keep(words []string, marks string) []string {
	var out []string
	for _, w := range words {
		if safe(w, marks) {
			out = append(out, w)
		}
	}
	return out
}

// safe says whether a word is of ASCII letters, digits and these marks.
func safe(word, marks string) bool {
	for _, r := range word {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && !strings.ContainsRune(marks, r) {
			return false
		}
	}
	return true
}

// Upstreams returns the nameservers that are somebody else: not loopback, none
// of the node's own addresses, no VIP, each once (hard case 16). Asking one of
// those would ask the node's own DNS server, or another node's that would ask
// back.
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
