package bench

import (
	"fmt"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/reference"
	"github.com/vipgen/vipgen/render"
)

// Profile is a way to set up a cluster.
type Profile struct {
	Name string
	// VRRP has the VRRP settings; the reference has its own.
	VRRP v1alpha1.VRRPSettings
	// Local selects the nodes with local access to the API; empty for the cluster's setting.
	Local v1alpha1.LocalAPI
	// OnRequest is set for a profile that is only measured if it is named.
	OnRequest bool
	// Routed is set for a cluster whose VIPs routers know by BGP, in place of the VRRP settings.
	Routed bool
	// Reference is set for what clusters run today, in place of vipgen's files.
	Reference bool
}

// referenceName is the name of the profile that others are compared with.
const referenceName = "reference"

// allNodesName is the name of the fast profile with HAProxy on compute nodes.
const allNodesName = "all-nodes"

// RoutedName is the name of the profile of [lab.Racks], whose nodes announce VIPs by BGP.
const RoutedName = "bgp"

// Profiles returns all named profiles.
func Profiles() []Profile {
	var out []Profile
	for _, p := range []v1alpha1.Profile{v1alpha1.ProfileFast, v1alpha1.ProfileVirtual, v1alpha1.ProfileClassic} {
		out = append(out, Profile{Name: string(p), VRRP: v1alpha1.VRRP{Profile: p, Mode: v1alpha1.ModeUnicast}.Settings()})
	}
	routed := Profile{Name: RoutedName, Routed: true, OnRequest: true}
	local := Profile{Name: allNodesName, VRRP: out[0].VRRP, Local: v1alpha1.LocalAPIAllNodes, OnRequest: true}
	return append(out, local, routed, Profile{Name: referenceName, VRRP: v1alpha1.ClassicSettings(v1alpha1.ModeUnicast), Reference: true})
}

// Custom returns vipgen's profile with another advertisement interval, in VRRPv3.
func Custom(interval time.Duration) (Profile, error) {
	if why := v1alpha1.AdvertInterval(3, interval); why != "" {
		return Profile{}, fmt.Errorf("advertisement interval %v: expected %s", interval, why)
	}
	return Profile{Name: interval.String(), VRRP: v1alpha1.VRRPSettings{
		Profile: v1alpha1.ProfileCustom, Mode: v1alpha1.ModeUnicast, Version: 3, AdvertIntervalMS: int(interval.Milliseconds()),
	}}, nil
}

// apply returns the cluster with the settings of the profile.
func (p Profile) apply(c *render.Cluster) *render.Cluster {
	if p.Routed {
		return c
	}
	c = lab.WithVRRP(c, p.VRRP)
	if p.Local != "" {
		c.Config.Spec.APIServer.Local = p.Local
	}
	return c
}

// install returns the function that writes a node's files while the lab is built; nil for vipgen's
// files.
func (p Profile) install(c *render.Cluster, plan *lab.Plan) func(*lab.Node) error {
	if !p.Reference {
		return nil
	}
	return func(n *lab.Node) error { return installReference(n, c, plan.Nodes) }
}

// installReference writes what a node runs today when these nodes are known.
func installReference(n *lab.Node, c *render.Cluster, nodes []lab.Machine) error {
	facts := &v1alpha1.Node{Name: n.Name, Role: n.Role}
	for _, m := range nodes {
		if m.Name == n.Name {
			facts.Interfaces = []v1alpha1.Interface{{Name: n.Link, Addresses: m.Addresses}}
			continue
		}
		peer := v1alpha1.Peer{Name: m.Name, Role: m.Role}
		for _, a := range m.Addresses {
			peer.Addresses = append(peer.Addresses, a.Addr())
		}
		facts.Peers = append(facts.Peers, peer)
	}
	if len(facts.Interfaces) == 0 {
		return fmt.Errorf("%s is not among the nodes of the cluster", n.Name)
	}
	return reference.Install(n.Host, c.Config, facts, c.Images)
}
