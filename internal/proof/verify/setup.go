package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// MaxNodes is the largest number of nodes of a group in a proof, besides the bootstrap.
const MaxNodes = 5

// usualNodes is the size of a pool without a given one.
const usualNodes = 3

// Setup holds the nodes that can hold the VIPs of a group, at one stage in the life of the
// cluster.
type Setup struct {
	Group v1alpha1.Group
	// Stage is "installation" or "running".
	Stage string
	// VRRP are the settings in force then.
	VRRP  v1alpha1.VRRPSettings
	Nodes []Node
	// Several is set where the cluster has several ingress controllers with VIPs.
	Several bool
	// Notes are the assumptions of the setup.
	Notes []string
}

// Stages of a cluster's life.
const (
	StageInstallation = "installation"
	StageRunning      = "running"
)

// Node is a node with its configuration.
type Node struct {
	Facts *v1alpha1.Node
	// Conf is its keepalived.conf; empty where another node's represents it.
	Conf []byte
	// Invented is set where name and address are made up.
	Invented bool
	// OpenShifts is set for the bootstrap host with OpenShift's own keepalived.
	OpenShifts bool
}

// Setups returns the setups of a cluster, in the order of its groups: each group at the
// installation, where that differs, and in the running cluster.
func Setups(c *render.Cluster, o Options) ([]Setup, error) {
	b := builder{cluster: c, most: min(cmp.Or(o.Nodes, MaxNodes), MaxNodes), template: keepalived.Template}
	if o.Template != nil {
		b.template = string(o.Template)
	}
	return setups(c, b)
}

// Samples returns Setups with all nodes of a group, and a configuration for the first of each
// role alone: the others differ in addresses.
func Samples(c *render.Cluster) ([]Setup, error) {
	return setups(c, builder{cluster: c, most: math.MaxInt, sample: true, template: keepalived.Template})
}

func setups(c *render.Cluster, like builder) ([]Setup, error) {
	if c.Config.Spec.LoadBalancer != v1alpha1.LoadBalancerInCluster {
		return nil, nil
	}
	var out []Setup
	for _, g := range c.Config.Spec.Groups {
		for _, stage := range []string{StageInstallation, StageRunning} {
			b := like
			b.group, b.stage = g, stage
			migrates := c.Migrates() && !c.Config.Spec.AnnounceOf(&g).Routed()
			if stage == StageInstallation && (c.ReplacesKeepalived() || !c.Config.Spec.Hosts(&g, v1alpha1.RoleBootstrap, nil) && !migrates) {
				continue // no difference then
			}
			s, err := b.setup()
			if err != nil {
				return nil, fmt.Errorf("group %s: %w", g.Name, err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

type builder struct {
	cluster *render.Cluster
	group   v1alpha1.Group
	stage   string
	// most bounds the nodes besides the bootstrap.
	most int
	// sample renders the configuration of the first node of each role alone.
	sample bool
	// template is the template of keepalived.conf.
	template string
	notes    []string
}

func (b *builder) setup() (Setup, error) {
	s := Setup{Group: b.group, Stage: b.stage, VRRP: b.cluster.Config.Spec.VRRP.Target, Several: several(b.cluster)}
	if b.stage == StageInstallation {
		s.VRRP = b.cluster.Config.Spec.VRRP.Initial()
	}
	routed := b.cluster.Config.Spec.AnnounceOf(&b.group).Routed()
	members := b.members()
	seen := map[string]bool{}
	for i, m := range members {
		if b.sample && seen[m.Role] {
			s.Nodes = append(s.Nodes, Node{Facts: &v1alpha1.Node{Name: m.Name, Role: m.Role}, Invented: m.invented})
			continue
		}
		seen[m.Role] = true
		n := Node{Facts: b.facts(members, i, s.VRRP), Invented: m.invented}
		n.OpenShifts = m.Role == v1alpha1.RoleBootstrap && !b.cluster.OwnsBootstrap() && !routed
		var err error
		if n.OpenShifts {
			n.Conf, err = openShiftsBootstrap(b.cluster.Config.Metadata.Name, &b.group, n.Facts)
		} else {
			n.Conf, err = keepalived.Render(b.template, b.cluster.Config, n.Facts)
		}
		if err != nil {
			return s, fmt.Errorf("keepalived.conf of %s: %w", m.Name, err)
		}
		s.Nodes = append(s.Nodes, n)
	}
	if slices.ContainsFunc(members, func(m member) bool { return m.invented }) {
		b.addNote("names and addresses that the input does not have are made up")
	}
	if s.Notes = b.notes; routed {
		s.VRRP = v1alpha1.VRRPSettings{}
	}
	return s, nil
}

// several reports whether a cluster has several ingress controllers with VIPs.
func several(c *render.Cluster) bool {
	n := 0
	for _, g := range c.Config.Spec.Groups {
		if g.Role == v1alpha1.GroupIngress {
			n++
		}
	}
	return n > 1
}

func (b *builder) addNote(format string, args ...any) {
	b.notes = append(b.notes, fmt.Sprintf(format, args...))
}

func (b *builder) facts(members []member, i int, v v1alpha1.VRRPSettings) *v1alpha1.Node {
	m := members[i]
	n := &v1alpha1.Node{
		Name: m.Name, Role: m.Role, Labels: m.Labels, VRRP: &v,
		BootstrapGone: b.stage == StageRunning,
		Interfaces:    []v1alpha1.Interface{{Name: linkName, Addresses: m.prefixes, DefaultRoute4: true, DefaultRoute6: true}},
	}
	for j, p := range members {
		if j != i {
			n.Peers = append(n.Peers, p.Peer)
		}
	}
	return n
}

// linkName is the interface of nodes, which the input does not have.
const linkName = "br-ex"
