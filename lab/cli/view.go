package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab/control"
)

// labView formats a lab for people.
type labView struct {
	command.Palette
	now   time.Time
	width int // of the terminal; 0 if unlimited
}

type cell struct {
	text  string
	style command.Colour
}

// lines returns the lines of the whole status.
func (v labView) lines(s *control.Status) []string {
	out := []string{v.row(nil,
		cell{"lab " + s.Name, command.Bold}, cell{s.Domain, command.Plain}, cell{"up " + age(v.now.Sub(s.Since)), command.Plain}, cell{s.Dir, command.Dim}), ""}
	out = append(out, v.table(v.vips(s))...)
	out = append(out, "")
	out = append(out, v.table(v.nodes(s))...)
	for _, line := range leftOut(s) {
		out = append(out, v.row(nil, cell{line, command.Yellow}))
	}
	if len(s.CutOff) > 0 {
		out = append(out, v.row(nil, cell{"the network is partitioned: " + strings.Join(s.CutOff, ", ") + " | the others", command.Red}))
	}
	return out
}

// leftOut returns the nodes that take no part in elections, a line for each reason.
func leftOut(s *control.Status) (lines []string) {
	nodes := map[string][]string{}
	var reasons []string
	for _, n := range s.Nodes {
		for _, why := range n.LeftOut {
			if nodes[why] == nil {
				reasons = append(reasons, why)
			}
			nodes[why] = append(nodes[why], n.Name)
		}
	}
	for _, why := range reasons {
		lines = append(lines, "takes no part: "+strings.Join(nodes[why], ", ")+": "+why)
	}
	return lines
}

// legend returns the explanation of the points of priorities, or with routers the machines besides nodes.
func (v labView) legend(s *control.Status) []string {
	if s.Routed() {
		return append([]string{""}, v.table(v.machines(s))...)
	}
	var rows [][]cell
	for _, t := range terms(s) {
		rows = append(rows, []cell{{t.points, command.Dim}, {t.meaning, command.Dim}, {strings.Join(t.groups, ", "), command.Dim}})
	}
	if rows == nil {
		return nil
	}
	return append([]string{""}, v.table(rows)...)
}

func (v labView) vips(s *control.Status) [][]cell {
	head := header("VIP", "GROUP", "HOLDER", "SINCE", "LAST FAILOVER")
	if s.Routed() {
		head = header("VIP", "GROUP", "ROUTED TO", "SINCE")
	}
	rows := [][]cell{head}
	for _, vip := range s.VIPs {
		holder := cell{vip.Holder(), command.Bold}
		if len(vip.Holders) == 0 || len(vip.Holders) > 1 && !vip.Routed {
			holder.style = command.Red
		}
		last := cell{"-", command.Dim}
		if f := vip.Failover; f != nil {
			last = cell{fmt.Sprintf("%s, %s ago", f, age(v.now.Sub(f.At))), command.Plain}
		}
		row := []cell{{vip.Address.String(), command.Plain}, {vip.Group, command.Plain}, holder, {age(v.now.Sub(vip.Since)), command.Plain}, last}
		rows = append(rows, row[:len(head)])
	}
	return rows
}

// machines returns the machines that are no nodes, with the shells of routers.
func (v labView) machines(s *control.Status) [][]cell {
	rows := [][]cell{header("MACHINE", "ADDRESS", "NAMESPACE", "SHELL")}
	for _, m := range s.Others {
		shell := "-"
		if len(m.Shell) > 0 {
			shell = m.Shell[0]
		}
		rows = append(rows, []cell{{m.Name, command.Plain}, {m.Addresses[0].String(), command.Plain}, {m.Namespace, command.Dim}, {shell, command.Plain}})
	}
	return rows
}

func (v labView) nodes(s *control.Status) [][]cell {
	groups := groupNames(s)
	if s.Routed() {
		groups = nil // there are no priorities
	}
	head := []string{"NODE", "ROLE", "STATE", "HOLDS"}
	for _, g := range groups {
		head = append(head, strings.ToUpper(g))
	}
	rows := [][]cell{header(append(head, "BACKENDS", "RESTARTS", "STOPPED")...)}
	for _, n := range s.Nodes {
		row := []cell{{n.Name, command.Plain}, {n.Role, command.Plain}, nodeState(s, n), {cmp.Or(held(s, n), "-"), command.Bold}}
		for _, g := range groups {
			row = append(row, priorityOf(n, g))
		}
		row = append(row, backends(n), cell{fmt.Sprint(n.Restarts), command.Dim})
		stopped := cell{"-", command.Dim}
		if n.Power && len(n.Stopped) > 0 {
			stopped = cell{strings.Join(n.Stopped, ", "), command.Yellow}
		}
		rows = append(rows, append(row, stopped))
	}
	return rows
}

func header(names ...string) (row []cell) {
	return lists.Map(names, func(n string) cell { return cell{n, command.Dim} })
}

// groupNames returns the names of the groups of VIPs, in the cluster's order.
func groupNames(s *control.Status) (names []string) {
	for _, vip := range s.VIPs {
		if !slices.Contains(names, vip.Group) {
			names = append(names, vip.Group)
		}
	}
	return names
}

// held returns the groups whose VIPs the node has.
func held(s *control.Status, n control.Node) string {
	var names []string
	for _, vip := range s.VIPs {
		if slices.Contains(vip.Holders, n.Name) && !slices.Contains(names, vip.Group) {
			names = append(names, vip.Group)
		}
	}
	return strings.Join(names, ", ")
}

func nodeState(s *control.Status, n control.Node) cell {
	switch {
	case !n.Power:
		return cell{"off", command.Red}
	case !n.Link:
		return cell{"no link", command.Red}
	case slices.Contains(s.CutOff, n.Name):
		return cell{"cut off", command.Red}
	default:
		return cell{"on", command.Plain}
	}
}

// priorityOf returns the node's priority for a group with its points: "60 = 40+20".
func priorityOf(n control.Node, group string) cell {
	for _, p := range n.Priorities {
		if p.Group != group {
			continue
		}
		if p.Fault {
			return cell{"fault", command.Yellow}
		}
		sum := fmt.Sprintf("%d = %d", p.Priority, p.Base)
		for _, t := range p.Terms {
			if t.On && t.Points != 0 {
				sum += fmt.Sprintf("%+d", t.Points)
			}
		}
		return cell{sum, command.Plain}
	}
	return cell{"-", command.Dim}
}

func backends(n control.Node) cell {
	if n.Backends == nil {
		return cell{"-", command.Dim}
	}
	up := 0
	for _, b := range n.Backends {
		if b.Up {
			up++
		}
	}
	c := cell{fmt.Sprintf("%d of %d", up, len(n.Backends)), command.Plain}
	if up < len(n.Backends) {
		c.style = command.Yellow
	}
	return c
}

// pointsFor is a term of the priorities of groups.
type pointsFor struct {
	points, meaning string
	groups          []string
}

// terms returns all terms of priorities, in the order of the groups.
func terms(s *control.Status) (out []pointsFor) {
	for _, g := range groupNames(s) {
		for _, n := range s.Nodes {
			for _, p := range n.Priorities {
				if p.Group != g {
					continue
				}
				for _, t := range p.Terms {
					out = addTerm(out, g, t)
				}
			}
		}
	}
	return out
}

func addTerm(list []pointsFor, group string, t state.Term) []pointsFor {
	points := fmt.Sprintf("%+d", t.Points)
	if t.Points == 0 {
		points = "fault"
	}
	for i := range list {
		if known := &list[i]; known.points == points && known.meaning == t.Meaning {
			if !slices.Contains(known.groups, group) {
				known.groups = append(known.groups, group)
			}
			return list
		}
	}
	return append(list, pointsFor{points, t.Meaning, []string{group}})
}

// age formats a duration in whole seconds.
func age(d time.Duration) string { return command.Duration(max(d, 0).Round(time.Second)) }

// table formats rows of the same length as columns.
func (v labView) table(rows [][]cell) (lines []string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		lines = append(lines, v.row(widths, row...))
	}
	return lines
}

// row formats cells, two spaces apart, and cuts what exceeds the terminal's width.
func (v labView) row(widths []int, cells ...cell) string {
	var b strings.Builder
	at, gap := 0, 0
	for i, c := range cells {
		text := []rune(command.SafeLine(c.text))
		if v.width > 0 {
			room := v.width - at - gap
			if room <= 0 {
				break
			}
			text = text[:min(len(text), room)]
		}
		b.WriteString(strings.Repeat(" ", gap))
		b.WriteString(v.Paint(c.style, string(text)))
		at += gap + len(text)
		gap = 2
		if i < len(widths) {
			gap += max(0, widths[i]-len(text))
		}
	}
	return b.String()
}
