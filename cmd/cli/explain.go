package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/cmd/inputflags"
	"github.com/vipgen/vipgen/docs"
	"github.com/vipgen/vipgen/internal/input"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/proof/explain"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/tree"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/render"
)

func (a *app) explainCommand() *cobra.Command {
	var f inputflags.Flags
	var o command.Format
	var picture string
	var all bool
	c := &cobra.Command{
		Use:   "explain [install-config.yaml|FIELD|CODE]",
		Short: "Explain which nodes can hold each VIP, and what clients see in each failure",
		Long: `Explain what clients of each VIP see in each failure, and for how long it is at most
` + vrrp.WithoutHolder + `, or they are ` + vrrp.WithoutAnswer + `. With --all also which nodes can hold the
VIP, what each check adds to a node's priority, and the rate of advertisements.
'vipgen verify' checks every combination of failures.

With a field of vipgen.yaml, such as spec.vrrp.profile, print instead what the field
is for, and which values and fields it has. With the code of a problem, such as
vip-taken, print what it means and what to do.`,
		Example: `  vipgen explain install-config.yaml
  vipgen explain install-config.yaml --all
  vipgen explain install-config.yaml --svg cluster.svg
  vipgen explain -o json install-config.yaml | jq '.groups[].stages[].timing'

  # Fields of vipgen.yaml
  vipgen explain spec
  vipgen explain spec.vrrp.profile

  # The code of a problem
  vipgen explain vip-taken`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: completeField,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && isField(args[0]) {
				if picture != "" {
					return command.Usagef(c, "--svg is for a cluster, not for the field %s", args[0])
				}
				return a.explainField(c, args[0], o)
			}
			if len(args) == 1 && !input.IsFile(args[0]) {
				if meaning, do := docs.Problem(args[0]); meaning != "" {
					if picture != "" || o == "html" {
						return command.Usagef(c, "--svg and -o html are for a cluster, not for the code %s", args[0])
					}
					return show(a, o, problemCode{args[0], meaning, do}, func(out *printer, p problemCode) {
						out.wrapped("", p.Code+": "+p.Meaning)
						out.wrapped("", "What to do: "+p.Do)
					})
				}
			}
			return a.explain(inputflags.Arg(args), &f, o, picture, all)
		},
	}
	f.Add(c)
	c.Flags().StringVar(&picture, "svg", "", "`file` to write a picture to, as SVG: VIPs, nodes, pods and connections")
	_ = c.MarkFlagFilename("svg", "svg")
	c.Flags().BoolVar(&all, "all", false, "print which nodes can hold each VIP, priorities, timing, the installation, names and certificates, and each failure in full")
	o.Add(c, "text", "json")
	return c
}

type problemCode struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
	Do      string `json:"do"`
}

func (a *app) explain(installConfig string, f *inputflags.Flags, o command.Format, picture string, all bool) error {
	cluster, err := a.quietCluster(installConfig, f)
	if err != nil {
		return err
	}
	report, err := explain.Cluster(cluster)
	if err != nil {
		return err
	}
	if err := tree.WriteReport(picture, func(w io.Writer) error { return explain.WriteSVG(w, cluster, report) }); err != nil {
		return err
	}
	return show(a, o, report, func(out *printer, r *explain.Report) { explainText(out, cluster, r, all) })
}

func explainText(out *printer, c *render.Cluster, r *explain.Report, all bool) {
	if len(r.Groups) == 0 {
		fmt.Fprintln(out, noGroupsText)
		certificateText(out, r.NamedCertificates)
		return
	}
	if why := profileReason(c); why != "" {
		fmt.Fprintf(out, "note: %s\n\n", why)
	}
	failureTable(out, r)
	if !all {
		fmt.Fprintln(out, "\nWith --all: nodes, priorities, timing, the installation, names and certificates, and each failure in full.")
		return
	}
	for _, g := range r.Groups {
		fmt.Fprintln(out)
		groupText(out, &g)
	}
	if len(r.OwnRequests) > 0 {
		fmt.Fprintln(out)
	}
	elected := slices.ContainsFunc(r.Groups, func(g explain.Group) bool { return g.Announce == "" })
	ownRequestsText(out, r.OwnRequests, elected)
	certificateText(out, r.NamedCertificates)
}

// failureTable prints what clients see of each failure in the running cluster, by the bounded
// time: without a holder, without an answer, or neither. A group of VIPs has "-" where there is
// no figure, and nothing where the failure cannot affect it.
func failureTable(out *printer, r *explain.Report) {
	type failure struct{ what, seen string }
	blocks := []string{vrrp.WithoutHolder + ", at most", vrrp.WithoutAnswer + ", at most", "other failures"}
	failures := make([][]failure, len(blocks))
	figures := map[failure]map[string]string{}
	heads := []string{"CLIENTS SEE"}
	w := command.Table(out)
	for _, g := range r.Groups {
		fmt.Fprintf(w, "%s\t%s%s\t%s\n", g.Name, list(g.VIPs), chosenBy(!g.InstallersDefault), knownBy(&g))
		heads = append(heads, strings.ToUpper(g.Name))
		for _, s := range g.Stages {
			if s.Stage != verify.StageRunning {
				continue
			}
			for _, f := range s.Failures {
				block, figure := 2, "-"
				switch {
				case f.WithoutHolderMS > 0:
					block, figure = 0, command.Millis(f.WithoutHolderMS)
				case f.WithoutAnswerMS > 0:
					block, figure = 1, command.Millis(f.WithoutAnswerMS)
				}
				one := failure{f.What, f.Brief}
				if figures[one] == nil {
					failures[block], figures[one] = append(failures[block], one), map[string]string{}
				}
				figures[one][g.Name] = figure
			}
		}
	}
	w.Flush()
	var table bytes.Buffer
	w = command.Table(&table)
	for i, block := range blocks {
		if len(failures[i]) == 0 {
			continue
		}
		row := append([]string{strings.ToUpper(block)}, heads...)
		if i > 0 {
			fmt.Fprintln(w, strings.Repeat("\t", len(heads)))
			row = row[:1]
			for range heads {
				row = append(row, "")
			}
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
		for _, f := range failures[i] {
			row := []string{f.what, f.seen}
			row = append(row, lists.Map(r.Groups, func(g explain.Group) string { return figures[f][g.Name] })...)
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	w.Flush()
	fmt.Fprintln(out)
	for line := range strings.Lines(table.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

// certificateText prints an object that is not empty.
func certificateText(out *printer, object string) {
	if object == "" {
		return
	}
	fmt.Fprintln(out, "\nNamed certificates, each a secret of type kubernetes.io/tls in openshift-config; put with those that the cluster has:")
	for line := range strings.Lines(object) {
		fmt.Fprint(out, "  ", line)
	}
}

// knownBy returns what a network knows the VIPs of a group by.
func knownBy(g *explain.Group) string {
	switch g.Announce {
	case v1alpha1.AnnounceBGP:
		return "announced to routers by BGP"
	case v1alpha1.AnnounceTable:
		return fmt.Sprintf("in routing table %d of nodes, for their BGP speaker", v1alpha1.AnnounceTableNumber)
	}
	return fmt.Sprintf("virtual router ID %d", g.VirtualRouterID)
}

func groupText(out *printer, g *explain.Group) {
	together := ""
	if g.Together {
		together = ", which move together"
	}
	fmt.Fprintf(out, "%s %s%s%s, %s\n", g.Name, list(g.VIPs), chosenBy(!g.InstallersDefault), together, knownBy(g))
	if g.Clients != nil {
		fmt.Fprintln(out, "\n  Clients:")
		for _, text := range g.Clients.Words {
			out.wrapped("    ", text)
		}
	}
	for _, s := range g.Stages {
		if g.Announce.Routed() {
			fmt.Fprintf(out, "\n  %s\n", capital(stageWords[s.Stage]))
		} else {
			fmt.Fprintf(out, "\n  %s: %s\n", capital(stageWords[s.Stage]), settings(s.VRRP))
		}
		for _, n := range s.Notes {
			fmt.Fprintf(out, "  note: %s\n", n)
		}
		if g.Announce.Routed() {
			for _, h := range s.Holders {
				fmt.Fprintf(out, "  announced by: %s\n", holderWords(h))
			}
		} else {
			holdersText(out, s.Holders)
			for _, text := range timingWords(s.Timing) {
				out.wrapped("  ", text)
			}
		}
		for _, f := range s.Failures {
			atMost := ""
			switch {
			case f.WithoutHolderMS > 0:
				atMost = fmt.Sprintf(" The VIP is %s for %s at most.", vrrp.WithoutHolder, command.Millis(f.WithoutHolderMS))
			case f.WithoutAnswerMS > 0:
				atMost = fmt.Sprintf(" New connections are %s for %s at most.", vrrp.WithoutAnswer, command.Millis(f.WithoutAnswerMS))
			}
			fmt.Fprintf(out, "\n  %s\n", f.What)
			out.wrapped("    ", f.Seen+atMost)
		}
	}
}

const mostNames = 5

func holdersText(out *printer, list []explain.Holder) {
	w := command.Table(out)
	for _, h := range list {
		fmt.Fprintf(w, "  can hold it:\t%s\n", holderWords(h))
		fmt.Fprintf(w, "    priority\t%d\n", h.Priority)
		for _, t := range h.Terms {
			fmt.Fprintf(w, "    %s\t%s\twhile %s\n", t.Name, pointWords(t), t.Meaning)
		}
		if h.Most > h.Priority {
			fmt.Fprintf(w, "    at most\t%d\n", h.Most)
		}
	}
	w.Flush()
}

func holderWords(h explain.Holder) string {
	who := fmt.Sprintf("%s (%s)", h.Role, grouped(h.Count))
	if len(h.Nodes) > 0 {
		who += ": " + strings.Join(h.Nodes[:min(len(h.Nodes), mostNames)], ", ")
	}
	if len(h.Nodes) > mostNames {
		who += ", ..."
	}
	return who
}

func pointWords(t explain.Term) string {
	if t.Veto {
		return "veto"
	}
	return fmt.Sprintf("+%d", t.Points)
}

// timingWords describes how often nodes advertise, and how soon another one takes a VIP.
func timingWords(t explain.Timing) []string {
	to := fmt.Sprintf("to each of %s peers", grouped(t.Peers))
	switch t.Peers {
	case 0:
		to = "to the multicast group"
	case 1:
		to = "to one peer"
	}
	return []string{
		fmt.Sprintf("advertisements: every %s %s; the holder sends %s a second, each other node receives %s",
			command.Millis(t.AdvertMS), to, rate(t.Sent), rate(t.Received)),
		fmt.Sprintf("failover: within %s if the holder is silent, %s if it stops properly, %s if its priority falls below another's; none if the holder stalls for up to %s",
			command.Millis(t.DeadMS), command.Millis(t.GoodbyeMS), command.Millis(t.BetterMS), command.Millis(t.StallMS)),
	}
}

// rate formats a number of advertisements per second, with a fraction only if it is small.
func rate(r float64) string {
	if r == float64(int(r)) {
		return grouped(int(r))
	}
	return fmt.Sprintf("%.1f", r)
}
