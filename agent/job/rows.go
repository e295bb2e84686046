package job

import (
	"net/netip"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
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

func FirstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

// Addresses joins addresses with spaces.
func Addresses(list []netip.Addr) string { return lists.Join(list, " ") }

func Either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
