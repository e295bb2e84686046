package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/render"
)

// fewestNodes is the smallest number of nodes for a proof: a single node has no other to give a
// VIP to.
const fewestNodes = 2

type verifyFlags struct {
	nodes    int
	template string
}

func (a *app) verifyCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var v verifyFlags
	c := &cobra.Command{
		Use:   "verify [install-config.yaml]",
		Short: "Check exhaustively which node holds each VIP in every failure",
		Long: `Check that each VIP is where it should be: with the keepalived.conf of each node, in
every combination of working and failed parts, and after every order of two further
changes, by keepalived's rules of election. Nothing is started. Print which node holds
each VIP in which state, or a counterexample.

Exit code 1: there is a counterexample.

Documentation: ` + command.Pages + `commands.md#verify`,
		Example: `  vipgen verify install-config.yaml

  # Two nodes of each group, as JSON
  vipgen verify install-config.yaml --nodes 2 -o json

  # With your own node template
  vipgen verify install-config.yaml --template keepalived.conf.tmpl`,
	}
	inputflags.OnCluster(c, func(c *cobra.Command, installConfig string) error {
		if v.nodes < fewestNodes || v.nodes > verify.MaxNodes {
			return command.Usagef(c, "--nodes %d: expected %d to %d", v.nodes, fewestNodes, verify.MaxNodes)
		}
		return a.verify(installConfig, &f, &v, o)
	})
	f.Add(c)
	c.Flags().IntVar(&v.nodes, "nodes", verify.MaxNodes, "`number` of nodes of each group to check at most, without the bootstrap host")
	c.Flags().StringVar(&v.template, "template", "", "`file` with a node template, instead of vipgen's keepalived.conf.tmpl")
	_ = c.MarkFlagFilename("template", "tmpl")
	command.Complete(c, "nodes", "2", "3", "4", "5")
	o.Add(c, "text", "json")
	return c
}

func (a *app) verify(installConfig string, f *inputflags.Flags, v *verifyFlags, o command.Format) error {
	cluster, err := a.quietCluster(installConfig, f)
	if err != nil {
		return err
	}
	report, err := a.prove(cluster, v)
	if err != nil {
		return err
	}
	return found(show(a, o, proven{report.Holds(), report}, proofText), !report.Holds())
}

type proven struct {
	Holds bool `json:"holds"`
	*verify.Report
}

// prove runs the proof. A template that cannot be read back is bad input.
func (a *app) prove(c *render.Cluster, v *verifyFlags) (*verify.Report, error) {
	progress := a.progress()
	o := verify.Options{Nodes: v.nodes, Progress: func(group string, done, total int) { progress("group "+group, done, total) }}
	if v.template == "" {
		return verify.Cluster(c, o)
	}
	text, err := a.File(v.template)
	if err != nil {
		return nil, err
	}
	o.Template = text
	report, err := verify.Cluster(c, o)
	if err != nil {
		err = problem.List{{File: v.template, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(),
			Expected: "a keepalived.conf.tmpl with the keywords of vipgen's, see 'vipgen render --format files'"}}
	}
	return report, err
}

// proofText prints the tables of holders by failure, or counterexamples.
func proofText(out *printer, r proven) {
	if len(r.Proofs) == 0 {
		fmt.Fprintln(out, noGroupsText)
		return
	}
	for _, p := range r.Proofs {
		fmt.Fprintf(out, "%s %s, %s: %s\n", p.Group, list(p.VIPs), stageWords[p.Stage], strings.Join(p.Nodes, ", "))
		if p.VRRP != (v1alpha1.VRRPSettings{}) {
			fmt.Fprintf(out, "  %s\n", settings(p.VRRP))
		}
		for _, n := range p.Notes {
			fmt.Fprintf(out, "  note: %s\n", n)
		}
		fmt.Fprintln(out)
		if p.Counterexample != nil {
			counterexampleText(out, p.Counterexample)
		} else {
			tableText(out, p)
		}
		fmt.Fprintln(out)
	}
	elected := slices.ContainsFunc(r.Proofs, func(p verify.Proof) bool { return p.VRRP != (v1alpha1.VRRPSettings{}) })
	ownRequestsText(out, r.OwnRequests, elected)
	if len(r.OwnRequests) > 0 {
		fmt.Fprintln(out)
	}
	switch {
	case r.Holds && !elected:
		fmt.Fprintln(out, "No counterexample.")
	case r.Holds:
		fmt.Fprintln(out, "No counterexample. There is no failback between equal priorities. A VIP without a holder goes")
		fmt.Fprintln(out, "to the first node that claims it, of two at once to the one with the higher address.")
	}
}

// ownRequestsText prints both paths to the API, and which programs take which. VIPs that are not elected
// have several holders.
func ownRequestsText(out *printer, list []verify.OwnRequests, elected bool) {
	if len(list) == 0 {
		return
	}
	holder, of := "by the holder", " of the VIP"
	if !elected {
		holder, of = "by a node that announces the VIP", ""
	}
	fmt.Fprintln(out, "Requests to the API VIPs from")
	w := command.Table(out)
	for _, o := range list {
		way := holder + of
		switch {
		case o.Problem != "":
			way = "DEPEND ON THE VIP: " + o.Problem
		case o.Local:
			way = "by the node's own HAProxy, wherever the VIP is; " + holder + " while that has no server"
		}
		fmt.Fprintf(w, "  programs on nodes of %s\t%s\n", o.Role, way)
	}
	fmt.Fprintf(w, "  all other clients\t%s\n", holder+of)
	w.Flush()
}

var stageWords = map[string]string{
	verify.StageInstallation: "during the installation",
	verify.StageRunning:      "in the running cluster",
}

func tableText(out *printer, p verify.Proof) {
	names := lists.Map(p.Checks, func(c verify.Check) string { return c.Name })
	if p.Table == nil { // no election, and no orders: nodes announce
		fmt.Fprintf(out, "  %s combinations\n  proved: %s\n", grouped(p.Combinations), strings.Join(names, ", "))
		return
	}
	w := command.Table(out)
	fmt.Fprintln(w, "  SERVICE LEVEL\tPRIORITY\tHOLDER\tCOMBINATIONS")
	for _, r := range p.Table {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.Best, numbers(r.Priorities), r.Holder, grouped(r.Combinations))
	}
	w.Flush()
	fmt.Fprintf(out, "\n  %s combinations, %s orders of two changes after them\n  proved: %s\n",
		grouped(p.Combinations), grouped(p.Orders), strings.Join(names, ", "))
}

func counterexampleText(out *printer, c *verify.Counterexample) {
	fmt.Fprintf(out, "  COUNTEREXAMPLE to %s: %s\n\n  At first:\n", c.Check.Name, c.Check.Rule)
	statesText(out, c.Start)
	for i, ch := range c.Changes {
		fmt.Fprintf(out, "  %d. The VIP is held by %s. %s.\n", i+1, holderNames(ch.Held), ch.What)
	}
	if len(c.Changes) > 0 {
		fmt.Fprintln(out, "  In the end:")
		statesText(out, c.End)
	}
	fmt.Fprintf(out, "  It is held by %s.\n  It should be held by %s: %s.\n", holderNames(c.Holders), c.Should, c.Why)
}

func statesText(out *printer, list []verify.NodeState) {
	w := command.Table(out)
	for _, n := range list {
		fmt.Fprintf(w, "    %s\t%s\t%s\n", n.Name, priorityWords(n), cmp.Or(strings.Join(n.Failed, ", "), "everything works"))
	}
	w.Flush()
}

func priorityWords(n verify.NodeState) string {
	if len(n.Priorities) == 0 {
		return "takes no part"
	}
	return "priority " + numbers(n.Priorities)
}

func holderNames(list []string) string {
	return cmp.Or(strings.Join(list, " and "), "no node")
}
