package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition/diff"
)

// maxComment is less than what a comment on a pull request may have: GitHub
// takes 65,536 characters.
const maxComment = 60000

// markdown prints a report for a comment on a pull request: what happens first,
// then what changes, folded.
func (r *diffReport) markdown(b *bytes.Buffer) {
	fmt.Fprintf(b, "### vipgen diff: %s\n", strings.ToUpper(r.total()[:1])+r.total()[1:])
	if len(r.groups) > 0 {
		b.WriteString("\n| clusters | pool | what happens | because of |\n|---|---|---|---|\n")
	}
	for _, g := range r.groups {
		for _, row := range g.rows() {
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", codeCell(g.title()), codeCell(row[0]), row[1], row[2])
		}
	}
	for _, g := range r.groups {
		var text bytes.Buffer
		(&diffPrinter{Buffer: &text}).group(g)
		fence := fenceFor(text.String())
		details := fmt.Sprintf("\n<details><summary>%s</summary>\n\n%stext\n%s%s\n\n</details>\n", escapeHTML(g.title()), fence, text.String(), fence)
		if b.Len()+len(details) > maxComment {
			b.WriteString("\nThe rest is too long for a comment: run `vipgen diff` to see it.\n")
			return
		}
		b.WriteString(details)
	}
}

// rows are the lines of the table: pool, what happens, why.
func (g diffGroup) rows() [][3]string {
	var out [][3]string
	for _, p := range g.Pools {
		effect := happens(p)
		if p.Effect >= diff.Drain {
			effect = "**" + effect + "**"
		}
		var why []string
		for _, r := range p.Reasons {
			why = append(why, codeCell(r.Change))
		}
		out = append(out, [3]string{p.Name, effect, strings.Join(why, "<br>")})
	}
	for _, h := range g.Hosts {
		out = append(out, [3]string{h.Name, "new hosts only", "its Ignition config"})
	}
	if len(g.Pools) == 0 && len(g.Manifests) > 0 {
		out = append(out, [3]string{"none", "nothing on nodes", "manifests"})
	}
	for _, s := range g.Shadowed {
		out = append(out, [3]string{s.Pool, "**shadowed**", codeCell(s.Name) + " by " + codeCell(s.Other)})
	}
	return out
}

// codeCell writes text as code in a table, where a bar would end the cell.
func codeCell(s string) string {
	s = strings.ReplaceAll(command.SafeLine(s), "|", `\|`)
	ticks := strings.Repeat("`", longestRun(s)+1)
	if ticks == "`" {
		return ticks + s + ticks
	}
	return ticks + " " + s + " " + ticks
}

// fenceFor gives a fence that the text does not hold.
func fenceFor(text string) string { return strings.Repeat("`", max(3, longestRun(text)+1)) }

// longestRun counts the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(command.SafeLine(s))
}
