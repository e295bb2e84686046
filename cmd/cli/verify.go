package cli

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/render/verify"
)

// fewestNodes is how many nodes a proof takes at least: one alone has nobody to
// give a VIP to.
const fewestNodes = 2

// verifyFlags say what to prove.
type verifyFlags struct {
	nodes    int
	template string
}

func (a *app) verifyCommand() *cobra.Command {
	var f inputFlags
	var o outputFlag
	var v verifyFlags
	c := &cobra.Command{
		Use:   "verify [install-config.yaml]",
		Short: "Prove who holds the VIPs when, or show how that goes wrong",
		Long: `Prove by exhaustion that the VIPs are where they should be. From the
keepalived.conf of each node, every combination of parts that work and failed is
tried, and every order of two changes after it, as keepalived elects. Nothing is
started. It prints who holds each VIP when, or the counterexample; docs/verify.md
says what is checked.

Exit code 1: there is a counterexample.`,
		Example: `  vipgen verify install-config.yaml

  # Two nodes of each group, for a program to read
  vipgen verify install-config.yaml --nodes 2 -o json

  # With a node template of your own
  vipgen verify install-config.yaml --template keepalived.conf.tmpl`,
		Args:              args(cobra.MaximumNArgs(1)),
		ValidArgsFunction: completeYAML,
		RunE: func(c *cobra.Command, args []string) error {
			if v.nodes < fewestNodes || v.nodes > verify.MaxNodes {
				return usage(c, fmt.Errorf("--nodes %d: expected %d to %d", v.nodes, fewestNodes, verify.MaxNodes))
			}
			return a.verify(installConfigArg(args), &f, &v, o)
		},
	}
	f.add(c)
	c.Flags().IntVar(&v.nodes, "nodes", verify.MaxNodes, "`how many` nodes of each group to look at, at most, besides the bootstrap")
	c.Flags().StringVar(&v.template, "template", "", "`file` that nodes make their keepalived.conf from, in place of vipgen's own keepalived.conf.tmpl")
	_ = c.MarkFlagFilename("template", "tmpl")
	complete(c, "nodes", "2", "3", "4", "5")
	o.add(c, "text", "json")
	return c
}

func (a *app) verify(installConfig string, f *inputFlags, v *verifyFlags, o outputFlag) error {
	cluster, err := a.quietCluster(installConfig, f)
	if err != nil {
		return err
	}
	report, err := a.prove(cluster, v)
	if err != nil {
		return err
	}
	if o == "json" {
		err = a.printJSON(struct {
			Holds bool `json:"holds"`
			*verify.Report
		}{report.Holds(), report})
	} else {
		err = a.printReport(report)
	}
	if err == nil && !report.Holds() {
		return errFinding
	}
	return err
}

// prove makes the proof. What cannot be read of a template is a mistake of who
// wrote it.
func (a *app) prove(c *render.Cluster, v *verifyFlags) (*verify.Report, error) {
	o := verify.Options{Nodes: v.nodes, Told: a.progress()}
	if v.template == "" {
		return verify.Cluster(c, o)
	}
	text, err := a.readFile(v.template)
	if err != nil {
		return nil, err
	}
	o.Template = text
	report, err := verify.Cluster(c, o)
	if err != nil {
		err = problem.List{{File: v.template, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(),
			Expected: "a keepalived.conf.tmpl with the words of vipgen's own, see 'vipgen render --format files'"}}
	}
	return report, err
}

// sayAfter is how long a person at a terminal waits for a word, and for the next.
const sayAfter = 2 * time.Second

// progress tells a person at a terminal how far a long proof is.
func (a *app) progress() func(group string, done, total int) {
	if !terminal(a.err) {
		return nil
	}
	said := time.Now()
	return func(group string, done, total int) {
		if time.Since(said) >= sayAfter {
			said = time.Now()
			fmt.Fprintf(a.err, "vipgen: group %s: %d%%\n", group, 100*done/total)
		}
	}
}

// printReport prints the tables of who holds what when, or counterexamples.
func (a *app) printReport(r *verify.Report) error {
	if len(r.Proofs) == 0 {
		_, err := fmt.Fprintln(a.out, outsideWords)
		return err
	}
	var all []error
	for _, p := range r.Proofs {
		fmt.Fprintf(a.out, "%s %s, %s: %s\n", p.Group, addresses(p.VIPs), stageWords[p.Stage], strings.Join(p.Nodes, ", "))
		fmt.Fprintf(a.out, "  %s\n", settings(p.VRRP))
		for _, n := range p.Notes {
			fmt.Fprintf(a.out, "  note: %s\n", n)
		}
		fmt.Fprintln(a.out)
		if p.Counterexample != nil {
			all = append(all, a.printCounterexample(p.Counterexample))
		} else {
			all = append(all, a.printTable(p))
		}
		fmt.Fprintln(a.out)
	}
	if r.Holds() {
		fmt.Fprintln(a.out, "No counterexample. Among equals the VIP stays where it is; one that nobody holds goes to")
		fmt.Fprintln(a.out, "whoever claims it first, the higher address if two do.")
	}
	return errors.Join(all...)
}

const outsideWords = "No node of the cluster holds a VIP: something outside of it does, or there is none."

var stageWords = map[string]string{
	verify.StageInstallation: "during the installation",
	verify.StageRunning:      "in the running cluster",
}

func (a *app) printTable(p verify.Proof) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  THE BEST THAT A NODE OFFERS\tPRIORITY\tHOLDER\tCOMBINATIONS")
	for _, r := range p.Table {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", r.Best, numbers(r.Priorities), r.Holder, grouped(r.Combinations))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var names []string
	for _, c := range p.Checks {
		names = append(names, c.Name)
	}
	_, err := fmt.Fprintf(a.out, "\n  %s combinations, %s orders of two changes after them\n  proved: %s\n",
		grouped(p.Combinations), grouped(p.Orders), strings.Join(names, ", "))
	return err
}

func (a *app) printCounterexample(c *verify.Counterexample) error {
	fmt.Fprintf(a.out, "  COUNTEREXAMPLE to %s: %s\n\n  At first:\n", c.Check.Name, c.Check.Rule)
	err := a.printStates(c.Start)
	for i, ch := range c.Changes {
		fmt.Fprintf(a.out, "  %d. The VIP is held by %s. %s.\n", i+1, people(ch.Held), ch.What)
	}
	if len(c.Changes) > 0 {
		fmt.Fprintln(a.out, "  In the end:")
		err = errors.Join(err, a.printStates(c.End))
	}
	_, last := fmt.Fprintf(a.out, "  It is held by %s.\n  It should be held by %s: %s.\n", people(c.Holders), c.Should, c.Why)
	return errors.Join(err, last)
}

func (a *app) printStates(list []verify.NodeState) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, n := range list {
		state := "everything works"
		if len(n.Failed) > 0 {
			state = strings.Join(n.Failed, ", ")
		}
		priority := "takes no part"
		if len(n.Priorities) > 0 {
			priority = "priority " + numbers(n.Priorities)
		}
		fmt.Fprintf(w, "    %s\t%s\t%s\n", n.Name, priority, state)
	}
	return w.Flush()
}

// people lists nodes.
func people(list []string) string {
	if len(list) == 0 {
		return "nobody"
	}
	return strings.Join(list, " and ")
}

func addresses(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, ", ")
}

// numbers lists numbers, "-" for none.
func numbers(list []int) string {
	if len(list) == 0 {
		return "-"
	}
	var out []string
	for _, n := range list {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ", ")
}

// grouped writes a number with a comma between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
