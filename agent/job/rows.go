package job

import (
	"net/netip"
	"strings"
	"time"
)

// LastReload is the row with the last reload of a daemon, and the first line of what is
// wrong now.
func LastReload(at time.Time, problem string) []string {
	last := "never"
	if !at.IsZero() {
		last = at.UTC().Format(time.RFC3339)
	}
	if problem != "" {
		problem = "problem: " + FirstLine(problem)
	}
	return []string{"  last reload", last, problem}
}

// FirstLine is that of a text.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// Addresses are written with spaces between them.
func Addresses(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
}

// Either is one of two texts.
func Either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
