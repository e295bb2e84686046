package verify

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// unit is a set of VIPs that move together: one VIP, or those of a sync group.
type unit struct {
	group *v1alpha1.Group
	vips  []netip.Addr
	nodes []*player
	// receives[x][y] tells, instance by instance, whether x receives the adverts of y.
	receives [][][]bool
	// strict models the order of addresses. It decides between nodes that hold the VIP with one
	// priority, which matters where a node claims it at its start, and where nodes do not
	// receive each other's adverts. Where all do, one of them keeps it, and each is tried.
	strict bool
}

// player is a node in the election of a unit.
type player struct {
	name      string
	role      string
	kind      *kind
	classes   []class
	instances []keepalivedconf.Instance
	// election holds the states by class and by whether any API server works.
	election [][2]electionState
}

// electionState holds a node's criteria in the election.
type electionState struct {
	// fit is set where the node runs keepalived and no check vetoes.
	fit bool
	// priorities are by instance.
	priorities []int
	quality    quality
}

// units returns the units of a setup: one for each VIP, or for those that a sync group on every
// node ties together.
func units(s *Setup) ([]*unit, error) {
	configs := make([]*keepalivedconf.Config, len(s.Nodes))
	for i, n := range s.Nodes {
		c, err := Parse(n.Conf)
		if err != nil {
			return nil, fmt.Errorf("keepalived.conf of %s: %w", n.Facts.Name, err)
		}
		configs[i] = c
	}
	var out []*unit
	for _, vips := range tied(s, configs) {
		u := &unit{group: &s.Group, vips: vips}
		for i, n := range s.Nodes {
			p, err := newPlayer(s, n, configs[i], vips)
			if err != nil {
				return nil, fmt.Errorf("keepalived.conf of %s: %w", n.Facts.Name, err)
			}
			if p != nil {
				u.nodes = append(u.nodes, p)
			}
		}
		u.listen()
		out = append(out, u)
	}
	return out, nil
}

// tied returns the VIPs that move together.
func tied(s *Setup, configs []*keepalivedconf.Config) [][]netip.Addr {
	together := slices.ContainsFunc(configs, func(c *keepalivedconf.Config) bool { return len(c.InstancesOf(s.Group.VIPs)) > 0 })
	for i, c := range configs {
		own := c.InstancesOf(s.Group.VIPs)
		if s.Nodes[i].OpenShifts {
			continue // only the end of keepalived itself changes its instances
		}
		if len(own) > 0 && !synced(c, own) {
			together = false
		}
	}
	if together && len(s.Group.VIPs) > 1 {
		return [][]netip.Addr{s.Group.VIPs}
	}
	return lists.Map(s.Group.VIPs, func(vip netip.Addr) []netip.Addr { return []netip.Addr{vip} })
}

// synced reports whether one sync group ties several instances together.
func synced(c *keepalivedconf.Config, list []keepalivedconf.Instance) bool {
	g := c.GroupOf(list[0].Name)
	return g != nil && len(list) > 1 && !slices.ContainsFunc(list, func(i keepalivedconf.Instance) bool { return c.GroupOf(i.Name) != g })
}

// newPlayer returns a node's part in an election, nil if it has none.
func newPlayer(s *Setup, n Node, c *keepalivedconf.Config, vips []netip.Addr) (*player, error) {
	p := &player{name: n.Facts.Name, role: n.Facts.Role, kind: kindOf(&s.Group, n.Facts.Role, s.Several), instances: c.InstancesOf(vips)}
	if n.OpenShifts {
		p.kind = openShiftsBootstrapKind
	}
	if len(p.instances) == 0 {
		return nil, nil
	}
	for i := range p.instances {
		// Multicast adverts come from the primary address of the interface.
		if in := &p.instances[i]; !in.Source.IsValid() {
			if b, ok := n.Facts.Bind(in.VIP().Addr()); ok {
				in.Source = b.Source.Addr()
			}
		}
	}
	p.classes = p.kind.classes()
	for _, class := range p.classes {
		var both [2]electionState
		for i, api := range []bool{false, true} {
			st, err := p.electionIn(&s.Group, c, class, api)
			if err != nil {
				return nil, err
			}
			both[i] = st
		}
		p.election = append(p.election, both)
	}
	return p, nil
}

// electionIn computes the election state of a node in a class.
func (p *player) electionIn(g *v1alpha1.Group, c *keepalivedconf.Config, class class, api bool) (electionState, error) {
	s := electionState{fit: class.runs}
	if !class.runs {
		s.priorities = make([]int, len(p.instances))
		return s, nil
	}
	s.quality = p.kind.quality(class.likeness, api)
	health := p.kind.health(class.likeness, api)
	for _, i := range p.instances {
		tracks := i.Tracks
		if sync := c.GroupOf(i.Name); sync != nil {
			tracks = sync.Tracks
		}
		sum := i.Priority
		for _, t := range tracks {
			on, err := trackFileUp(g, p.role, health, t.File)
			switch {
			case err != nil:
				return s, err
			case on && t.Weight == 0:
				s.fit = false
			case on:
				sum += t.Weight
			}
		}
		s.priorities = append(s.priorities, min(max(sum, vrrp.LowestPriority), vrrp.HighestPriority))
	}
	return s, nil
}

// trackFileUp reports whether the agent's track file is up. The agent writes those of the node's
// terms and no others.
func trackFileUp(g *v1alpha1.Group, role string, h vrrp.Health, file string) (bool, error) {
	_, terms := vrrp.PriorityTerms(g, role)
	i := slices.IndexFunc(terms, func(t vrrp.Term) bool { return t.Name == file })
	if i < 0 {
		return false, fmt.Errorf("track file %s is none that the agent of a %s writes for group %s", file, role, g.Name)
	}
	return terms[i].On(h), nil
}

// listen computes which nodes receive the adverts of which others.
func (u *unit) listen() {
	u.receives = make([][][]bool, len(u.nodes))
	for x, a := range u.nodes {
		u.receives[x] = make([][]bool, len(u.nodes))
		u.strict = u.strict || slices.ContainsFunc(a.instances, func(i keepalivedconf.Instance) bool { return i.Master })
		for y, b := range u.nodes {
			for i := range a.instances {
				ok := x != y && i < len(b.instances) && a.instances[i].Receives(&b.instances[i])
				u.receives[x][y] = append(u.receives[x][y], ok)
				u.strict = u.strict || x != y && !ok
			}
		}
	}
}
