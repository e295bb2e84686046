package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/vipgen/vipgen/internal/page"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/verify"
)

//go:embed verify.html.tmpl
var verifyBody string

var verifyPage = page.New(verifyBody, page.Funcs{"nodes": holderNames, "state": stateWords, "priority": priorityWords})

// htmlProof is a proof as its page has it.
type htmlProof struct {
	verify.Proof
	VIPs, Stage, Settings, Nodes string
	Combinations, Orders         string
	Rows                         []htmlRow
}

type htmlRow struct{ Best, Priorities, Holder, Combinations string }

// writeProofs writes a report as a page.
func writeProofs(w io.Writer, c *render.Cluster, r *verify.Report) error {
	body := struct {
		Outside string
		Proofs  []htmlProof
	}{Outside: outsideText}
	failed := 0
	for _, p := range r.Proofs {
		out := htmlProof{Proof: p, VIPs: list(p.VIPs), Stage: capital(stageWords[p.Stage]), Settings: settings(p.VRRP),
			Nodes: strings.Join(p.Nodes, ", "), Combinations: grouped(p.Combinations), Orders: grouped(p.Orders)}
		for _, row := range p.Table {
			out.Rows = append(out.Rows, htmlRow{row.Best, numbers(row.Priorities), row.Holder, grouped(row.Combinations)})
		}
		if p.Counterexample != nil {
			failed++
		}
		body.Proofs = append(body.Proofs, out)
	}
	result := "no counterexample"
	if failed > 0 {
		result = fmt.Sprintf("%s in %d checks of VIPs", plural(failed, "counterexample"), len(r.Proofs))
	}
	return verifyPage.Write(w, page.Page{
		Command: "vipgen verify",
		Heading: "Which node holds each VIP, in every failure",
		Lead: []string{
			"Every combination of working and failed parts of the nodes was tried with the keepalived.conf of each node, by keepalived's rules of election. " +
				"Each row says in how many combinations a service level was the best that any node offered, and which node held the VIP then.",
			"There is no failback between equal priorities. A VIP without a holder goes to the first node that claims it, of two at once to the one with the higher address.",
		},
		Facts:  append(clusterFacts(c), page.Fact{Name: "result", Value: result}),
		Legend: []page.Key{{Class: "good", Text: "holds in all of them"}, {Class: "bad", Text: "failed, or a counterexample"}},
		Body:   body,
	})
}

// clusterFacts are those of the head of a page about a cluster. They are the same for
// whoever renders it, and when.
func clusterFacts(c *render.Cluster) []page.Fact {
	s := c.Config.Spec
	return []page.Fact{{Name: "cluster", Value: s.Domain}, {Name: "platform", Value: string(s.Platform)}, {Name: "topology", Value: string(s.Topology)}, {Name: "OpenShift", Value: cmp.Or(c.Version, versions())}}
}
