package agentcli

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
)

// nodeStatus is what the jobs of this node say; nil for one that does not run.
type nodeStatus struct {
	Keepalived *state.Keepalived `json:"keepalived,omitempty"`
	HAProxy    *state.HAProxy    `json:"haproxy,omitempty"`
	Firewall   *state.Firewall   `json:"firewall,omitempty"`
	CoreDNS    *state.CoreDNS    `json:"coredns,omitempty"`
	MDNS       *state.MDNS       `json:"mdns,omitempty"`
}

func (a *app) statusCommand() *cobra.Command {
	var o command.Format
	c := &cobra.Command{
		Use:   "status",
		Short: "Print the state of the agent's jobs on this node",
		Long: `Print which VIPs this node holds and why (its priority, term by term), the peers, the
backends, the redirect, the mDNS names published and discovered, and the last reloads
and refused configurations. Jobs that do not run are left out.`,
		Example: `  vipgen-agent status
  vipgen-agent status -o json`,
		Args: command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			s, err := a.readStatus()
			if err != nil {
				return err
			}
			if o == "json" {
				return a.printJSON(s)
			}
			return a.printStatus(s)
		},
	}
	o.Add(c, "text", "json")
	return c
}

func (a *app) readStatus() (s nodeStatus, err error) {
	dir, err := state.Open(a.below(v1alpha1.RunDir))
	if err != nil {
		return s, err
	}
	defer dir.Close()
	if s.Keepalived, err = state.Read[state.Keepalived](dir); err != nil {
		return s, err
	}
	if s.HAProxy, err = state.Read[state.HAProxy](dir); err != nil {
		return s, err
	}
	if s.Firewall, err = state.Read[state.Firewall](dir); err != nil {
		return s, err
	}
	if s.CoreDNS, err = state.Read[state.CoreDNS](dir); err != nil {
		return s, err
	}
	s.MDNS, err = state.Read[state.MDNS](dir)
	return s, err
}

// printStatus prints a line for every fact, a job after the other.
func (a *app) printStatus(s nodeStatus) error {
	w := command.Table(a.out)
	line := func(words ...string) { fmt.Fprintln(w, strings.Join(words, "\t")) }
	if k := s.Keepalived; k == nil {
		line("keepalived", "does not run")
	} else {
		line("keepalived", yesNo(k.Wanted, "takes part", "takes no part"), fmt.Sprintf("restarts %d", k.Restarts))
		for _, why := range k.Idle {
			line("", why)
		}
		if k.Scheduling != "" {
			line("  scheduling", string(k.Scheduling))
		}
		settings(line, k)
		guard(line, &k.Guard, k.Wanted)
		for _, i := range k.Instances {
			line("  "+i.VIP.String(), whereHeld(i), priority(i), fmt.Sprintf("on %s, %d peers", i.Interface, len(i.Peers)))
		}
		line(lastOf(k.Config.AppliedAt, cmp.Or(k.ClusterProblem, k.Config.Problem))...)
	}
	if h := s.HAProxy; h == nil {
		line("haproxy", "does not run")
	} else {
		line("haproxy", yesNo(h.Serving, "serves", "does not serve: "+h.Why), fmt.Sprintf("restarts %d, reloads %d", h.Restarts, h.Reloads))
		for _, b := range h.Backends {
			line("  "+b.Name, yesNo(b.Up, "up", "down"), b.Address)
		}
		line(lastOf(h.LastReload, h.Problem)...)
	}
	if f := s.Firewall; f == nil {
		line("firewall", "does not run")
	} else {
		line("firewall", yesNo(f.InPlace, "redirect in place", "no redirect"), addresses(f.VIPs), fmt.Sprintf("restored %d", f.Restored), f.Why)
	}
	if d := s.CoreDNS; d == nil {
		line("coredns", "does not run")
	} else {
		line("coredns", yesNo(d.Serving, "serves", "does not serve: "+d.Why), fmt.Sprintf("restarts %d, reloads %d", d.Restarts, d.Reloads))
		line("  upstreams", cmp.Or(strings.Join(d.Upstreams, " "), "none"))
		if len(d.MDNS) > 0 {
			line("  names from mDNS", strings.Join(d.MDNS, " "))
		}
		line(lastOf(d.LastReload, d.Problem)...)
	}
	if m := s.MDNS; m == nil {
		line("mdns", "does not run")
	} else {
		mdnsStatus(line, m)
	}
	return w.Flush()
}

// settings are the node's VRRP settings, and the progress of a switch to others.
func settings(line func(...string), k *state.Keepalived) {
	if k.VRRP == nil {
		return
	}
	line("  VRRP settings", k.VRRP.String())
	m := k.Migration
	if m == nil {
		return
	}
	words := []string{"  switches to", m.Target.String(), yesNo(m.Ready, "ready", "not ready")}
	switch {
	case m.Moving:
		line(append(words, "now")...)
	case m.Agreed:
		line(append(words, "all switch at "+m.At.UTC().Format(time.RFC3339))...)
	default:
		line(words...)
		line("  waits for", m.WaitsFor)
	}
}

// guard says whose VRRP packets are taken, and how many others there were.
func guard(line func(...string), g *state.Guard, wanted bool) {
	if !wanted && len(g.Dropped) == 0 {
		return
	}
	words := []string{"  guard", yesNo(g.InPlace, "in place", "not in place"), fmt.Sprintf("restored %d", g.Restored)}
	for _, d := range g.Dropped {
		words = append(words, fmt.Sprintf("router ID %d on %s, %s: %d packets dropped", d.RouterID, d.Interface, d.Family, d.Packets))
	}
	line(words...)
}

func mdnsStatus(line func(...string), m *state.MDNS) {
	if m.Announced {
		line("mdns", "announced", m.Name, fmt.Sprintf("%s on %s", addresses(m.Addresses), m.Interface))
	} else {
		line("mdns", "not announced", m.Name, m.Why)
	}
	for _, h := range m.Hosts {
		line("  "+h.Name, "found", addresses(h.Addresses))
	}
	if m.Problem != "" {
		first, _, _ := strings.Cut(m.Problem, "\n")
		line("  problem", first)
	}
}

func addresses(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return strings.Join(out, " ")
}

// whereHeld says who holds the VIP, as far as this node knows.
func whereHeld(i state.Instance) string {
	switch h := i.Holder; {
	case i.Holds:
		return "held here"
	case h == nil:
		return "not held here"
	default:
		return fmt.Sprintf("held by %s, priority %d", cmp.Or(h.Node, h.Address.String()), h.Priority)
	}
}

// priority says how an instance's priority comes about.
func priority(i state.Instance) string {
	text := fmt.Sprintf("priority %d = %d", i.Priority, i.Base)
	for _, t := range i.Terms {
		if t.On {
			text += fmt.Sprintf(" %+d %s", t.Points, t.Name)
		}
	}
	if i.Fault {
		text += ", in fault"
	}
	return text
}

// lastOf is the line with the last reload and what is wrong now.
func lastOf(reload time.Time, problem string) []string {
	last := "never"
	if !reload.IsZero() {
		last = reload.UTC().Format(time.RFC3339)
	}
	first, _, _ := strings.Cut(problem, "\n")
	if first != "" {
		first = "problem: " + first
	}
	return []string{"  last reload", last, first}
}

func yesNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
