package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/lists"
)

func (r *diffReport) text(p *printer) {
	for _, g := range r.groups {
		p.line("%s", g.title())
		p.in(func() { p.group(g) })
	}
	p.line("%s", r.total())
}

func (g diffGroup) title() string {
	if n := len(g.clusters); n > 1 {
		return fmt.Sprintf("%d clusters: %s", n, lists.Summarize(g.clusters, 5, ", "))
	}
	return "cluster " + g.clusters[0]
}

func (r *diffReport) total() string {
	differ := 0
	for _, c := range r.Clusters {
		if !c.Empty() {
			differ++
		}
	}
	out := fmt.Sprintf("%d of %d clusters differ", differ, r.Compared)
	if r.Compared == 1 {
		out = []string{"no difference", "the cluster differs"}[differ]
	}
	var parts []string
	for e := diff.Refused; e > diff.Nothing; e-- {
		if n := r.Effects[e.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", e, n))
		}
	}
	if len(parts) > 0 {
		out += "; pools by what happens to them: " + strings.Join(parts, ", ")
	}
	return out
}

func (p *printer) group(g diffGroup) {
	seen := map[string]string{}
	for _, pool := range g.Pools {
		colour := command.Plain
		if pool.Effect >= diff.Drain {
			colour = command.Yellow
		}
		p.paint(colour, fmt.Sprintf("pool %s: %s", pool.Name, effectText(pool)))
		p.in(func() {
			for _, r := range pool.Reasons {
				p.line("because of %s: %s", r.Change, r.Why)
			}
			p.changes(pool.Changes, "pool "+pool.Name, seen)
		})
	}
	p.others(g, seen)
	p.consequences(g)
}

// others prints changes outside of pools. seen maps printed changes to their place.
func (p *printer) others(g diffGroup, seen map[string]string) {
	for _, host := range g.Hosts {
		p.line("Ignition config %s: read when a host is installed; running hosts do not change", host.Name)
		p.in(func() { p.changes(host.Changes, "Ignition config "+host.Name, seen) })
	}
	if len(g.Manifests) > 0 {
		p.line("manifests")
		p.in(func() { p.changes(g.Manifests, "manifests", seen) })
	}
	if len(g.Texts) > 0 {
		p.line("files")
		p.in(func() { p.changes(g.Texts, "files", seen) })
	}
}

// consequences prints the impact on clients, and which files replace or shadow others.
func (p *printer) consequences(g diffGroup) {
	if len(g.Clients) > 0 {
		p.line("Clients will see")
	}
	p.in(func() {
		for _, s := range g.Clients {
			p.line("%s", s.What)
			p.in(func() {
				for _, text := range s.Clients {
					p.line("- %s", text)
				}
			})
		}
	})
	p.overlaps("replaced by vipgen's", g.Replaces)
	p.overlaps("shadowed: vipgen's files never reach the node", g.Shadowed)
}

func effectText(pool diff.Pool) string {
	out := pool.Effect.String()
	if pool.Without != nil {
		out += fmt.Sprintf(", once the new node disruption policy is in force; until then: %s", *pool.Without)
	}
	return out
}

// changes prints changes; one that was printed before is only named, with the place where it
// was, unless where is empty.
func (p *printer) changes(list []diff.Change, where string, seen map[string]string) {
	for _, c := range list {
		from := ""
		if c.From != "" {
			from = " (" + c.From + ")"
		}
		key := fmt.Sprintf("%s %s %s %v %s", c.Kind, c.Name, c.What, c.Fields, c.Lines)
		if first, known := seen[key]; known && c.What == "changed" {
			p.line("%s %s%s: %s, as in %s", c.Kind, c.Name, from, c.What, first)
			continue
		}
		seen[key] = cmp.Or(where, c.From)
		p.line("%s %s%s: %s", c.Kind, c.Name, from, c.What)
		p.in(func() {
			for _, f := range c.Fields {
				p.field(f)
			}
			p.text(c.Lines)
		})
	}
}

func (p *printer) field(f diff.Field) {
	switch {
	case f.What != "":
		p.line("%s: %s %s", f.Path, f.What, f.Old+f.New)
	case f.Lines != "":
		p.line("%s", f.Path)
		p.in(func() { p.text(f.Lines) })
	default:
		p.line("%s: %s -> %s", f.Path, f.Old, f.New)
	}
}

func (p *printer) text(lines string) {
	for line := range strings.Lines(lines) {
		line = command.SafeLine(strings.TrimRight(line, "\n"))
		p.WriteString(p.colours.Diff(strings.Repeat("  ", p.depth)+line) + "\n")
	}
}

// overlaps prints the files that MachineConfigs share, by the other MachineConfig.
func (p *printer) overlaps(title string, list []diff.Overlap) {
	if len(list) == 0 {
		return
	}
	p.line("%s", title)
	p.in(func() {
		for _, o := range list {
			same := ""
			if o.Same {
				same = ", with the same contents"
			}
			p.line("pool %s: %s %s: %s has it and MachineConfig %s of %s%s", o.Pool, o.Kind, o.Name, o.Vipgen, o.Other, o.Owner, same)
		}
	})
}
