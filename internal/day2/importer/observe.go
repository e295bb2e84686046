package importer

import (
	"net/netip"
	"path"
	"slices"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// Observed are the facts in the objects of a cluster, whichever keepalived serves its VIPs.
// Unknown ones are empty.
type Observed struct {
	// Platform in the install-config's spelling.
	Platform string
	Topology v1alpha1.Topology
	// UserManaged is set where OpenShift runs no load balancer.
	UserManaged bool
	// VIPs lists the VIPs known to OpenShift.
	VIPs []netip.Addr
	// Release without a patch level, as "4.18".
	Release string
	// Images of the release, without the agent's.
	Images v1alpha1.Images
	// MachineConfigs are all of them, including those that the operator rendered.
	MachineConfigs []ignition.Document
	// Nodes lists the Nodes of the export.
	Nodes []Node

	files []*file
}

// Observe reads the objects of one cluster. Unlike Read it ignores node files and accepts
// clusters that run vipgen. The list has the problems of unreadable files.
func Observe(files []render.File) (*Observed, problem.List) {
	i := &importer{evidence: evidence{images: map[string]claims[string]{}}}
	var m machineConfigs
	all := newFiles(files)
	for _, f := range all {
		if texts[path.Base(f.Name)] == nil {
			i.objects(&m, f)
		}
	}
	o := &Observed{Nodes: i.seen, files: all}
	o.MachineConfigs = append(o.MachineConfigs, lists.Map(m.docs, func(d configDoc) ignition.Document { return d.Document })...)
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

// Read is the function Read for the observed files, which are not parsed again.
func (o *Observed) Read(given Given) (*Result, problem.List) { return read(o.files, given) }
