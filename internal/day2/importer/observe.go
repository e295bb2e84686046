package importer

import (
	"net/netip"
	"path"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/render"
)

// Observed is what the objects of a cluster say about it, whichever keepalived serves its
// VIPs. What they do not say is empty.
type Observed struct {
	// Platform as the install-config spells it.
	Platform string
	Topology v1alpha1.Topology
	// UserManaged says that OpenShift runs no load balancer.
	UserManaged bool
	// VIPs are those that OpenShift knows.
	VIPs []netip.Addr
	// Release without a patch level, as "4.18".
	Release string
	// Images of the release; that of the agent is empty.
	Images v1alpha1.Images
	// MachineConfigs are all of them, also those that the operator made of others.
	MachineConfigs []ignition.Document
	// Nodes lists the Nodes of the export.
	Nodes []Node
}

// Observe reads the objects of one cluster. Unlike Read it takes no node files, and
// clusters that run vipgen. The list has the problems of what cannot be read.
func Observe(files []render.File) (*Observed, problem.List) {
	i := &importer{evidence: evidence{images: map[string]claims[string]{}}}
	var m machineConfigs
	for _, f := range files {
		if texts[path.Base(f.Name)] == nil {
			i.objects(&m, f)
		}
	}
	o := &Observed{Nodes: i.seen}
	for _, d := range m.docs {
		o.MachineConfigs = append(o.MachineConfigs, d.Document)
	}
	best := func(c claims[string]) string {
		first, _ := c.best()
		return first.value
	}
	o.Platform, o.Release, o.Topology = best(i.platform), best(i.version), v1alpha1.Topology(best(i.topology))
	external, _ := i.external.best()
	api, _ := i.api.best()
	ingress, _ := i.ingress.best()
	o.UserManaged, o.VIPs = external.value, slices.Concat(api.value, ingress.value)
	for name, into := range map[string]*string{"keepalived": &o.Images.Keepalived, "haproxy": &o.Images.HAProxy, "coredns": &o.Images.CoreDNS} {
		*into = best(i.images[name])
	}
	i.list.Sort()
	return o, i.list
}
