package cli

import (
	_ "embed"
	"io"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/page"
)

//go:embed diff.html.tmpl
var diffBody string

var diffPage = page.New(diffBody)

type (
	htmlGroup struct {
		Title string
		Rows  []htmlDiffRow
		Lines []htmlLine
		Text  string // consequences of the changes
	}
	htmlDiffRow struct {
		Pool, Effect, Class string
		Reasons             []diff.Reason
		Note                string
		Lines               []htmlLine
	}
	// htmlLine is a line of the terminal's report; its class is its kind in a diff.
	htmlLine struct{ Class, Text string }
)

// html writes a report as a page: effects first, then changes, folded.
func (r *diffReport) html(w io.Writer) error {
	groups := lists.Map(r.groups, func(g diffGroup) htmlGroup { return g.html() })
	return diffPage.Write(w, page.Page{
		Command: "vipgen diff",
		Heading: r.heading(),
		Facts:   []page.Fact{{Name: "from", Value: r.A}, {Name: "to", Value: r.B}, {Name: "compared", Value: command.Plural(r.Compared, "cluster")}, {Name: "result", Value: r.total()}},
		Legend:  []page.Key{{Class: "bad", Text: "nodes drain or reboot, or a change has no effect"}, {Class: "good", Text: "nodes keep running"}},
		Body:    groups,
	})
}

func (g diffGroup) html() htmlGroup {
	out := htmlGroup{Title: g.title()}
	seen := map[string]string{}
	for _, row := range g.rows() {
		class := "good"
		if row.drains {
			class = "bad"
		}
		lines := classed(func(p *printer) { p.changes(row.changes, "pool "+row.pool, seen) })
		out.Rows = append(out.Rows, htmlDiffRow{row.pool, row.effect, class, row.reasons, row.note, lines})
	}
	out.Lines = classed(func(p *printer) { p.others(g, seen) })
	var text printer
	text.consequences(g)
	out.Text = text.String()
	return out
}

// heading names the cluster, if there is only one.
func (r *diffReport) heading() string {
	if r.Compared != 1 || len(r.groups) != 1 {
		return "What changes on which nodes"
	}
	return r.groups[0].title() + ": what changes on which nodes"
}

// classed returns the printed lines of changes with their classes.
func classed(print func(*printer)) (out []htmlLine) {
	var p printer
	print(&p)
	for line := range strings.Lines(p.String()) {
		out = append(out, htmlLine{lineClass(line), line})
	}
	return out
}

func lineClass(line string) string {
	switch sign := strings.TrimLeft(line, " "); {
	case strings.HasPrefix(sign, "+"):
		return "more"
	case strings.HasPrefix(sign, "-"):
		return "less"
	case strings.HasPrefix(sign, "@@"):
		return "at"
	}
	return ""
}
