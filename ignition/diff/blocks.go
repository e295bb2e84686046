package diff

import (
	"fmt"
	"strings"
)

// block is a named part of a configuration file, such as "vrrp_instance demo_API_0".
type block struct{ name, text string }

// braces splits a file with blocks in braces: keepalived.conf, Corefile and their templates.
// Text outside of blocks is in one without a name. Unbalanced braces make a block that ends
// with the file.
func braces(text string) []block {
	var out []block
	var loose strings.Builder
	depth := 0
	for line := range strings.Lines(text) {
		before := depth
		depth = max(0, depth+weight(line))
		switch {
		case before > 0:
			out[len(out)-1].text += line
		case depth > 0:
			name := strings.Join(strings.Fields(strings.TrimRight(strings.TrimSpace(line), "{")), " ")
			out = append(out, block{name, line})
		default:
			loose.WriteString(line)
		}
	}
	return unique(append(out, block{"", loose.String()}))
}

// weight returns the number of opening braces in a line minus the closing ones. Those of
// templates are balanced; those in comments do not count.
func weight(line string) int {
	if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "!") {
		return 0
	}
	line = strings.NewReplacer("{{", "", "}}", "").Replace(line)
	return strings.Count(line, "{") - strings.Count(line, "}")
}

// sectionWords start a section of haproxy.cfg.
var sectionWords = map[string]bool{
	"global": true, "defaults": true, "frontend": true, "backend": true, "listen": true,
	"userlist": true, "peers": true, "resolvers": true, "mailers": true, "cache": true, "program": true, "ring": true,
}

// sections splits haproxy.cfg or its template.
func sections(text string) []block {
	out := []block{{}}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) > 0 && sectionWords[words[0]] && line[0] != ' ' && line[0] != '\t' {
			out = append(out, block{name: strings.Join(words, " ")})
		}
		out[len(out)-1].text += line
	}
	return unique(out)
}

// unique numbers blocks of the same name.
func unique(list []block) []block {
	seen := map[string]int{}
	for i, b := range list {
		if seen[b.name]++; seen[b.name] > 1 {
			list[i].name = fmt.Sprintf("%s (%d)", b.name, seen[b.name])
		}
	}
	return list
}

func compareBlocks(before, after []block) []Field {
	index := func(list []block) map[string]string {
		out := map[string]string{}
		for _, b := range list {
			out[b.name] = b.text
		}
		return out
	}
	a, b := index(before), index(after)
	var out []Field
	for _, name := range keys(a, b) {
		old, was := a[name]
		now, is := b[name]
		if old == now {
			continue
		}
		f := Field{Path: name, Lines: unified(old, now)}
		if name == "" {
			f.Path = "outside of blocks"
		} else if w := changeKind(was, is); w != changed {
			f.Lines, f.What = "", w
		}
		out = append(out, f)
	}
	return out
}
