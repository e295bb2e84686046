package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/status"
)

func (a *app) statusCommand() *cobra.Command {
	var o command.Format
	c := &cobra.Command{
		Use:   "status FILE|DIR...",
		Short: "Show the state of all nodes of a running cluster",
		Long: `Read what the agents of a cluster's nodes have published, offline, and show the cluster:
which node holds each VIP, which nodes take no part and why, versions, VRRP settings,
and where nodes disagree.

It takes the JSON of 'vipgen-agent status -o json', a file for each node or all in one,
and exported Nodes, also in a must-gather, so that a node without state is missed. Of a
directory, what is below it counts; - is standard input. A file that is torn or empty is
a finding, and the others count.

Exit code 0: no findings; checks that fail do not change it. 1: something is wrong, or
the state of a node is missing. 2: bad usage, or no state of any node. 3: could not read.

Documentation: ` + command.Pages + `troubleshoot.md`,
		Example: `  mkdir -p nodes && oc get nodes -o json > nodes/nodes.json
  for node in $(oc get nodes -o jsonpath='{.items[*].metadata.name}'); do
    oc exec -n openshift-kni-infra keepalived-$node -c keepalived -- \
      /vipgen/vipgen-agent status -o json > nodes/$node.json
  done
  vipgen status nodes`,
		Args: command.Args(1, -1),
		RunE: func(_ *cobra.Command, args []string) error { return a.status(args, o) },
	}
	o.Add(c, "text", "json")
	return c
}

func (a *app) status(names []string, o command.Format) error {
	defer collectEarlier()()
	var r status.Reader
	if err := a.readStatus(&r, names); err != nil {
		return err
	}
	c := r.Cluster()
	if len(c.Nodes) == 0 && len(c.Findings) == 0 {
		return problem.List{{File: names[0], Severity: problem.Error, Code: problem.WrongKind, Found: "no state of any node",
			Expected: "what 'vipgen-agent status -o json' printed, or exported Nodes"}}
	}
	return found(show(a, o, c, statusText), len(c.Findings) > 0)
}

// readStatus reads files one by one, so that unneeded parts are not kept.
func (a *app) readStatus(r *status.Reader, names []string) error {
	return a.eachFile(names, status.Relevant, func(name string, inFolder bool, data []byte, err error) error {
		if err != nil {
			r.Unreadable(name, err)
		} else if !r.Add(filepath.ToSlash(name), data) && !inFolder {
			return problem.List{{File: name, Severity: problem.Error, Code: problem.WrongKind, Found: "no state of a node",
				Expected: "what 'vipgen-agent status -o json' printed, or exported Nodes"}}
		}
		return nil
	})
}

func statusText(b *printer, c *status.Cluster) {
	w := command.Table(b)
	row := func(cells ...string) { fmt.Fprintln(w, command.SafeLine(strings.Join(cells, "\t"))) }
	if len(c.VIPs) > 0 {
		row("VIP", "INSTANCE", "HELD BY", "OTHERS")
	}
	for _, v := range c.VIPs {
		others := v.Members[len(v.Holders):]
		row(v.VIP.String(), v.Instance, cmp.Or(members(&v, v.Members[:len(v.Holders)]), "-"), cmp.Or(members(&v, others), "-"))
	}
	w.Flush()
	if len(c.VIPs) > 0 {
		b.WriteByte('\n')
	}
	announcer := "KEEPALIVED"
	routed := func(v status.VIP) bool { return v.Routed }
	switch {
	case !slices.ContainsFunc(c.VIPs, routed):
	case slices.ContainsFunc(c.VIPs, func(v status.VIP) bool { return !v.Routed }):
		announcer = "KEEPALIVED, BGP"
	default:
		announcer = "BGP"
	}
	row("NODE", "AGENT", "VRRP SETTINGS", announcer, "HAPROXY", "REDIRECT", "OWN REQUESTS", "COREDNS", "MDNS")
	for _, n := range c.Nodes {
		cells := []string{n.Name, cmp.Or(n.Version, "-"), cmp.Or(n.Settings, "-")}
		for _, job := range []string{"keepalived", "haproxy", "firewall", "coredns", "mdns"} {
			does, _, _ := strings.Cut(n.Jobs[job], ":")
			if job == "keepalived" {
				does = strings.Join(slices.DeleteFunc([]string{does, n.Jobs["bgp"]}, func(s string) bool { return s == "" }), ", ")
			}
			cells = append(cells, cmp.Or(strings.TrimPrefix(does, "redirect "), "-"))
			if job == "firewall" {
				cells = append(cells, cmp.Or(n.OwnRequests, "-"))
			}
		}
		row(cells...)
	}
	w.Flush()
	statusReasons(b, c)
	if len(c.Findings) == 0 {
		fmt.Fprintf(b, "\n%s\n", noFindings(c))
		return
	}
	fmt.Fprintf(b, "\n%s\n", capital(command.Plural(len(c.Findings), "finding")))
	for _, f := range c.Findings {
		about := ""
		for _, s := range []string{f.Node, f.VIP} {
			if s != "" {
				about += " " + s + ":"
			}
		}
		fmt.Fprintf(b, "  %s\n", command.SafeLine(fmt.Sprintf("%s:%s %s", f.Code, about, f.Text)))
		if f.Next != "" {
			fmt.Fprintf(b, "    next  %s\n", f.Next)
		}
	}
}

// noFindings returns the verdict of a cluster without findings. A failed check is none: a
// worker may have no router.
func noFindings(c *status.Cluster) string {
	fail := 0
	for _, n := range c.Nodes {
		fail += len(n.Unhealthy)
	}
	switch fail {
	case 0:
		return "Nothing is wrong."
	case 1:
		return "No findings, but 1 check fails (see above)."
	}
	return fmt.Sprintf("No findings, but %d checks fail (see above).", fail)
}

// statusReasons prints why nodes take no part, the results of their checks, and the reason why a
// migration waits.
func statusReasons(b *printer, c *status.Cluster) {
	section := func(head string, of func(*status.Node) []string) {
		for i := range c.Nodes {
			for _, text := range of(&c.Nodes[i]) {
				if head != "" {
					fmt.Fprintf(b, "\n%s\n", head)
					head = ""
				}
				fmt.Fprintf(b, "  %s\n", command.SafeLine(c.Nodes[i].Name+": "+text))
			}
		}
	}
	section("Takes no part", func(n *status.Node) []string { return n.LeftOut })
	section("Checks that fail", func(n *status.Node) []string { return n.Unhealthy })
	section("Migrates to other VRRP settings", func(n *status.Node) []string {
		if n.MigratesTo == "" {
			return nil
		}
		return []string{n.MigratesTo + ", waits for " + cmp.Or(n.WaitsFor, "nothing")}
	})
}

// members lists the first nodes that take part for a VIP, with priority and missing points, or
// with the preference of a routed VIP.
func members(v *status.VIP, list []status.Member) string {
	const most = 4
	var out []string
	for _, m := range list[:min(len(list), most)] {
		text := fmt.Sprintf("%s %d", m.Node, m.Priority)
		switch {
		case v.Routed && m.Fault:
			text = fmt.Sprintf("%s (%s)", m.Node, cmp.Or(strings.Join(m.Vetoes, ", "), "withdrawn"))
		case v.Routed:
			text = fmt.Sprintf("%s %d", m.Node, m.Preference)
		case m.Fault:
			text = fmt.Sprintf("%s fault (%s)", m.Node, strings.Join(m.Vetoes, ", "))
		case len(m.Lacks) > 0:
			text += " (without " + strings.Join(m.Lacks, ", ") + ")"
		}
		out = append(out, text)
	}
	if more := len(list) - most; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}
