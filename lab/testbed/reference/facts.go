package reference

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// facts is the data of the templates.
type facts struct {
	figures
	Node      string
	Bootstrap bool
	Images    v1alpha1.Images
	Ports     v1alpha1.Ports
	// VIPs are the VIPs that this node may hold, APIVIPs the redirected ones.
	VIPs, APIVIPs []netip.Addr
	Scripts       []script
	Instances     []instance
	SyncGroups    []syncGroup
	// HAProxy is nil on a node without HAProxy.
	HAProxy *haproxy.Conf
}

// instance is a VRRP instance with the names of its scripts.
type instance struct {
	keepalived.Instance
	Tracks []string
}

// syncGroup is a group of instances with the names of its scripts.
type syncGroup struct {
	keepalived.SyncGroup
	Tracks []string
}

// gather returns the facts of a node, or the reason why it can run nothing.
func gather(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, images v1alpha1.Images) (*facts, error) {
	if err := errors.Join(c.Validate().Err(), n.Validate().Err()); err != nil {
		return nil, err
	}
	for _, image := range []string{images.Keepalived, images.HAProxy} {
		if !v1alpha1.ValidImage(image) {
			return nil, fmt.Errorf("the name of an image is missing or wrong: %q", image)
		}
	}
	f := &facts{figures: today, Node: n.Name, Bootstrap: n.Role == v1alpha1.RoleBootstrap, Images: images, Ports: c.Spec.Ports}
	for _, g := range c.Spec.Groups {
		if err := f.add(c, n, g); err != nil {
			return nil, err
		}
	}
	if len(f.APIVIPs) == 0 {
		return nil, errors.New("the cluster has no API VIP")
	}
	if len(f.Instances) == 0 {
		return nil, fmt.Errorf("no VIP of the cluster is for the role %s", n.Role)
	}
	if n.Role == v1alpha1.RoleMaster || n.Role == v1alpha1.RoleArbiter {
		f.HAProxy = haproxy.New(c, n)
	}
	return f, nil
}

// add adds the instances of a group. The original has the API VIPs and those of the default ingress
// controller, and no others (seed 003). Where the node belongs to the group but cannot take part,
// the original has no configuration at all (hard case 2).
func (f *facts) add(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, g v1alpha1.Group) error {
	var scripts []script
	switch {
	case g.Name == v1alpha1.FirstAPI:
		f.APIVIPs = g.VIPs
		if !f.Bootstrap {
			scripts = apiScripts()
		}
	case g.Role == v1alpha1.GroupIngress && g.Controller == v1alpha1.DefaultIngress:
		// Every node of control plane and compute is in the group (seed 004).
		g.NodeSelector = nil
		scripts = ingressScripts(fmt.Sprintf("http://localhost:%d", g.HealthPort))
	default:
		return nil
	}
	conf := elect(c, n, g)
	if len(conf.Instances) == 0 && len(conf.Idle) > 0 {
		return errors.New(strings.Join(conf.Idle, "; "))
	}
	if len(conf.Instances) == 0 {
		return nil
	}
	tracks := names(scripts)
	for _, s := range conf.SyncGroups {
		f.SyncGroups = append(f.SyncGroups, syncGroup{s, tracks})
	}
	if len(conf.SyncGroups) > 0 {
		tracks = nil // keepalived ignores weights of members
	}
	for _, i := range conf.Instances {
		f.VIPs = append(f.VIPs, i.VIP.Addr())
		f.Instances = append(f.Instances, instance{i, tracks})
	}
	f.Scripts = append(f.Scripts, scripts...)
	return nil
}

// elect returns interfaces, peers and priorities as vipgen computes them, with today's VRRP
// settings: VRRPv2 (3 for IPv6), unicast, an advertisement every second.
func elect(c *v1alpha1.ClusterConfig, n *v1alpha1.Node, g v1alpha1.Group) *keepalived.Conf {
	cluster, node, classic := *c, *n, v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	cluster.Spec.Groups = []v1alpha1.Group{g}
	node.VRRP = &classic
	return keepalived.New(&cluster, &node)
}

func names(scripts []script) []string {
	return lists.Map(scripts, func(s script) string { return s.Name })
}
