// Package docs holds the documentation that vipgen prints.
package docs

import (
	_ "embed" // problems.md
	"regexp"
	"strings"
)

//go:embed problems.md
var problems string

// link matches a link of Markdown, whose text is what a terminal shows.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// Problem returns the row of problems.md for a problem code: its meaning, and what to do. Both are
// empty for a code that does not exist.
func Problem(code string) (meaning, do string) {
	for line := range strings.Lines(problems) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) == 3 && cells[0] == "| `"+code+"`" {
			plain := func(s string) string { return link.ReplaceAllString(s, "$1") }
			return plain(cells[1]), plain(strings.TrimSuffix(cells[2], " |"))
		}
	}
	return "", ""
}
