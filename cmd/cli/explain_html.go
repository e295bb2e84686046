package cli

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"net/netip"

	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/explain"
)

//go:embed explain.html.tmpl
var explainBody string

var explainPage = page.New(explainBody, page.Funcs{
	"list": list[netip.Addr], "settings": settings, "points": pointWords, "holder": holderWords, "timing": timingWords, "capital": capital,
	"stage": func(s string) string { return capital(stageWords[s]) },
	"moved": func(f explain.Failure) string {
		if f.MovedMS == 0 {
			return "-"
		}
		return millis(f.MovedMS)
	},
})

// writeExplained writes a report as a page, with the picture of the cluster.
func writeExplained(w io.Writer, c *render.Cluster, r *explain.Report) error {
	var picture bytes.Buffer
	if len(r.Groups) > 0 {
		if err := explain.WriteSVG(&picture, c, r); err != nil {
			return err
		}
	}
	var lead []string
	if why := profileWhy(c); why != "" {
		lead = append(lead, capital(why)+".")
	}
	return explainPage.Write(w, page.Page{
		Command: "vipgen explain",
		Heading: "Which nodes can hold each VIP, and what clients see in each failure",
		Lead:    append(lead, "The node with the highest priority holds a VIP; checks that succeed add to a node's priority. vipgen verify checks every combination of failures."),
		Facts:   clusterFacts(c),
		Body: struct {
			*explain.Report
			Outside, CertificatesText string
			Picture                   template.HTML
		}{r, outsideText, certificatesText, template.HTML(picture.String())}, // made by internal/svg, which escapes all text
	})
}
