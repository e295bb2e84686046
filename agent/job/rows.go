package job

import (
	"net/netip"
	"strings"
	"time"
)

// LastReload returns the row with a daemon's last reload and the first line of its
// problem.
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

// FirstLine returns the first line of a text.
func FirstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// Addresses joins addresses with spaces.
func Addresses(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
}

// Either returns yes or no.
func Either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
