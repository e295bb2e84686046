package cli

import (
	_ "embed"
	"io"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
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
	}
	htmlDiffRow struct {
		Pool, Effect, Class string
		Changes             []string
		Note                string
	}
	// htmlLine is one of the report for a terminal; its class is that of a diff.
	htmlLine struct{ Class, Text string }
)

// html writes a report as a page: what happens first, then what changes, folded.
func (r *diffReport) html(w io.Writer) error {
	groups := lists.Map(r.groups, func(g diffGroup) htmlGroup { return g.html() })
	return diffPage.Write(w, page.Page{
		Command: "vipgen diff",
		Heading: "What changes on which nodes",
		Facts:   []page.Fact{{Name: "from", Value: r.A}, {Name: "to", Value: r.B}, {Name: "compared", Value: command.Plural(r.Compared, "cluster")}, {Name: "result", Value: r.total()}},
		Legend:  []page.Key{{Class: "bad", Text: "nodes drain or reboot, or a change has no effect"}, {Class: "good", Text: "nodes go on running"}},
		Body:    groups,
	})
}

func (g diffGroup) html() htmlGroup {
	out := htmlGroup{Title: g.title()}
	for _, row := range g.rows() {
		class := "good"
		if row.drains {
			class = "bad"
		}
		out.Rows = append(out.Rows, htmlDiffRow{row.pool, row.effect, class, row.changes, row.note})
	}
	var text printer
	text.group(g)
	for line := range strings.Lines(text.String()) {
		out.Lines = append(out.Lines, htmlLine{lineClass(line), line})
	}
	return out
}

// lineClass says of a line of a diff what it is, by its first sign.
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
