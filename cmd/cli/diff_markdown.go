package cli

import (
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/lists"
)

// maxComment is below the limit of a comment on a pull request: GitHub's is 65,536 characters.
const maxComment = 60000

// markdown prints a report for a comment on a pull request: effects first, then changes,
// folded.
func (r *diffReport) markdown(b *printer) {
	fmt.Fprintf(b, "### vipgen diff: %s\n", strings.ToUpper(r.total()[:1])+r.total()[1:])
	if len(r.groups) > 0 {
		b.WriteString("\n| clusters | pool | what happens | because of |\n|---|---|---|---|\n")
	}
	for _, g := range r.groups {
		for _, row := range g.rows() {
			effect := row.effect
			if row.drains {
				effect = "**" + effect + "**"
			}
			why := lists.Map(row.reasons, func(r diff.Reason) string { return codeCell(r.Change) })
			if row.note != "" {
				why = append(why, row.note)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", codeCell(g.title()), codeCell(row.pool), effect, strings.Join(why, "<br>"))
		}
	}
	for _, g := range r.groups {
		var text printer
		text.group(g)
		fence := strings.Repeat("`", max(3, longestRun(text.String())+1))
		details := fmt.Sprintf("\n<details><summary>%s</summary>\n\n%stext\n%s%s\n\n</details>\n", escapeHTML(g.title()), fence, text.String(), fence)
		if b.Len()+len(details) > maxComment {
			b.WriteString("\nThe rest is too long for a comment: run `vipgen diff` to see it.\n")
			return
		}
		b.WriteString(details)
	}
}

// diffRow is the effect on a pool, or on objects outside of pools.
type diffRow struct {
	pool, effect string
	drains       bool // or worse
	reasons      []diff.Reason
	changes      []diff.Change // in the pool
	note         string        // a reason without a change
}

func (g diffGroup) rows() []diffRow {
	var out []diffRow
	for _, p := range g.Pools {
		out = append(out, diffRow{pool: p.Name, effect: effectText(p), drains: p.Effect >= diff.Drain, reasons: p.Reasons, changes: p.Changes})
	}
	for _, h := range g.Hosts {
		out = append(out, diffRow{pool: h.Name, effect: "new hosts only", note: "its Ignition config"})
	}
	if len(g.Pools) == 0 && len(g.Manifests) > 0 {
		out = append(out, diffRow{pool: "none", effect: "nothing on nodes", note: "manifests"})
	}
	for _, s := range g.Shadowed {
		out = append(out, diffRow{pool: s.Pool, effect: "shadowed", drains: true, reasons: []diff.Reason{{Change: s.Name + " by " + s.Other}}})
	}
	return out
}

// codeCell formats text as code in a table, where a bar would end the cell.
func codeCell(s string) string {
	s = strings.ReplaceAll(command.SafeLine(s), "|", `\|`)
	ticks := strings.Repeat("`", longestRun(s)+1)
	if ticks == "`" {
		return ticks + s + ticks
	}
	return ticks + " " + s + " " + ticks
}

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
