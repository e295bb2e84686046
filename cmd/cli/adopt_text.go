package cli

import (
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/adopt"
)

func planText(out *printer, p *adopt.Plan) {
	out.line("Cluster %s, OpenShift %s", p.Cluster, p.Release)
	planItems(out, p)
	planUnknown(out, "\nUnknown to the operator contract: look at them, then --accept", p.Unknown)
	planUnknown(out, "\nUnknown to the operator contract, and accepted", p.Accepted)
	if len(p.Replaced)+len(p.Shadowed) > 0 {
		out.WriteByte('\n')
	}
	out.overlaps("files of your MachineConfigs that vipgen's replace", p.Replaced)
	out.overlaps("shadowed: vipgen's files never reach the node", p.Shadowed)
	planRollouts(out, p)
	planImages(out, p)
	importLosses(out, p.Import.Lost, true, "Not carried over, and a cause of split brain: nodes that differ in it do not receive each other's advertisements")
	if n := len(p.Import.Lost); n > 0 {
		fmt.Fprintf(out, "\nNot carried over: %s; 'vipgen import' lists them.\n", command.Plural(n, "setting"))
	}
	for _, note := range p.Notes {
		out.WriteString("\n" + strings.Join(wrap("Note: "+command.SafeLine(note), lineWidth), "\n") + "\n")
	}
}

var treatments = map[assets.Treatment]string{
	assets.Replaced: "Replaced by vipgen's",
	assets.Supplied: "Supplied by vipgen",
	assets.Kept:     "Kept as the operator has it",
}

func planItems(out *printer, p *adopt.Plan) {
	var last assets.Treatment
	for _, i := range p.Items {
		if i.Treatment != last {
			out.WriteByte('\n')
			out.line("%s", treatments[i.Treatment])
			last = i.Treatment
		}
		why := ""
		for _, text := range []string{i.Why, i.Note} {
			if text != "" {
				why += ": " + text
			}
		}
		out.line("  %s (%s)%s", i.Name, strings.Join(i.Pools, ", "), why)
	}
	fmt.Fprintf(out, "\nThe operator's other files and units, up to %d in a pool, have nothing to do with VIPs.\n", p.Others)
}

func planUnknown(out *printer, head string, list []adopt.Unknown) {
	if len(list) == 0 {
		return
	}
	out.WriteString(head + "\n")
	for _, u := range list {
		out.line("  %s %s (MachineConfig %s)", u.Kind, u.Name, u.From)
	}
}

func planRollouts(b *printer, p *adopt.Plan) {
	b.WriteString("\nRoll-outs: each goes through a pool node by node\n")
	w := command.Table(b)
	fmt.Fprintln(w, "  POOL\tROLL-OUT\tWITH THE POLICY\tWITHOUT\t")
	for _, r := range p.Rollouts {
		name := r.Name
		if r.Mode {
			name = "by vipgen migrate: " + name
		}
		for _, c := range r.Pools {
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t\n", command.SafeLine(c.Pool), name, c.With, c.Without)
		}
	}
	_ = w.Flush() // in memory
	for _, c := range p.Rollouts[0].Pools {
		with, without := p.Reboots(c.Pool, false)
		long, longest := p.Reboots(c.Pool, true)
		fmt.Fprintf(b, "  %s: %s with a node disruption policy, %s without; with vipgen migrate %d and %d\n",
			command.SafeLine(c.Pool), times(with, "reboot"), times(without, "reboot"), long, longest)
	}
}

// times is a plural that also counts none.
func times(n int, thing string) string {
	if n == 0 {
		return "no " + thing
	}
	return command.Plural(n, thing)
}

func planImages(b *printer, p *adopt.Plan) {
	b.WriteString("\nImages\n")
	w := command.Table(b)
	for _, i := range p.Images {
		how := "by tag"
		if i.Pinned {
			how = "by digest"
		}
		if i.Running {
			how += ", as the cluster runs it"
		}
		mirror := ""
		if i.Mirror != "" {
			mirror = "mirror: " + i.Mirror
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\tpull secret: %s\t%s\t\n", i.Name, command.SafeLine(i.Image), how, i.Secret, command.SafeLine(mirror))
	}
	_ = w.Flush() // in memory
}

func checkText(out *printer, c *adopt.Check) {
	out.line("Cluster %s, OpenShift %s", c.Cluster, c.Is)
	if c.Was != c.Is {
		out.line("the directory was made for OpenShift %s", c.Was)
	}
	if len(c.Changes) > 0 {
		out.line("changed by the operator since")
		out.in(func() { out.changes(c.Changes, "", map[string]string{}) })
	}
	planUnknown(out, "unknown to the operator contract", c.Unknown)
	out.overlaps("shadowed: vipgen's files never reach the node", c.Shadowed)
	for _, i := range c.Images {
		out.line("image %s: %s, the release has %s", i.Name, i.Was, i.Is)
	}
	if c.Next != nil {
		nextText(out, c)
	}
	if c.Findings() == 0 {
		out.line("no change")
	}
}

func nextText(out *printer, c *adopt.Check) {
	n := c.Next
	out.line("OpenShift %s: %s", n.Release, n.Daemons)
	out.in(func() {
		for _, text := range n.News {
			out.line("new in %s", text)
		}
		for _, r := range n.Rows {
			why := ""
			if r.Why != "" {
				why = ": " + r.Why
			}
			out.line("%s (%s): %s -> %s%s", r.Name, r.Pool, treatmentText(r.Was), treatmentText(r.Is), why)
		}
		for _, p := range n.Pools {
			out.line("pool %s, rendered for %s: %s", p.Name, n.Release, effectText(p))
			out.in(func() {
				for _, x := range p.Changes {
					out.line("%s %s: %s", x.Kind, x.Name, x.What)
				}
			})
		}
		if len(n.Rows)+len(n.Pools) == 0 {
			out.line("changes nothing that vipgen replaces, keeps or renders")
		}
	})
}

// treatmentText describes a treatment, also none.
func treatmentText(t assets.Treatment) string {
	if t == "" {
		return "none"
	}
	return string(t)
}
