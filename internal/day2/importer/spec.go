package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
)

func (i *importer) settlePools(ic *installFile, vc *v1alpha1.VIPConfig) {
	topology, _ := usual(i, "the topology", i.topology)
	ic.ControlPlane.Name = v1alpha1.RoleMaster
	masters, arbiters := 0, 0
	switch v1alpha1.Topology(topology.value) {
	case v1alpha1.TopologySingleReplica:
		masters = 1
	case v1alpha1.TopologyHighlyAvailableArbiter:
		masters, arbiters = 2, 1
	case v1alpha1.TopologyDualReplica:
		masters = 2
		ic.ControlPlane.Fencing = &fencingFile{Credentials: make([]struct{}, masters)}
	}
	if masters > 0 {
		i.carry("topology", topology.value, topology.at)
	} else if c, ok := i.masters.best(); ok {
		masters = c.value
		i.carry("control-plane nodes", strconv.Itoa(masters), c.at)
		if a, ok := i.arbiters.best(); ok && masters == 2 {
			arbiters = a.value
			i.carry("arbiters", strconv.Itoa(arbiters), a.at)
		}
	} else {
		masters = 3
		i.assume("control-plane nodes", "3", "neither Nodes nor machine config pools nor a topology with another number")
	}
	ic.ControlPlane.Replicas = masters
	if arbiters > 0 {
		ic.Arbiter = &poolFile{Name: v1alpha1.RoleArbiter, Replicas: arbiters}
	}
	workers := 3
	switch c, ok := i.workers.best(); {
	case ok:
		workers = c.value
		i.carry("compute nodes", strconv.Itoa(workers), c.at)
	case v1alpha1.Topology(topology.value) == v1alpha1.TopologySingleReplica:
		workers = 0
	default:
		i.assume("compute nodes", "3", "neither Nodes nor machine config pools; with 0, routers run on the control plane")
	}
	ic.Compute = []poolFile{{Name: v1alpha1.RoleWorker, Replicas: workers}}
	known := map[string]bool{}
	for _, p := range i.pools.sorted() {
		if !known[p.value] {
			known[p.value] = true
			vc.Spec.Pools = append(vc.Spec.Pools, v1alpha1.Pool{Name: p.value})
			i.carry("pool", p.value, p.at)
		}
	}
	slices.SortFunc(vc.Spec.Pools, func(a, b v1alpha1.Pool) int { return strings.Compare(a.Name, b.Name) })
}

// settleImages takes images from the ControllerConfig, and their release where it has all of
// them.
func (i *importer) settleImages(vc *v1alpha1.VIPConfig) {
	named := 0
	fields := map[string]*string{"keepalived": &vc.Spec.Images.Keepalived, "haproxy": &vc.Spec.Images.HAProxy, "coredns": &vc.Spec.Images.CoreDNS}
	for _, name := range daemons {
		image, ok := usual(i, "image of "+name, i.images[name])
		if !ok {
			i.assume("image of "+name, "vipgen's table", "no ControllerConfig names one")
			continue
		}
		*fields[name] = image.value
		named++
		i.carry("image of "+name, image.value, image.at)
	}
	if v, ok := i.version.best(); ok && named == len(daemons) && slices.Contains(ignition.SupportedOpenShift(), v.value) {
		vc.Spec.Images.Release = v.value
	}
	if vc.Spec.Images.Agent = i.given.AgentImage; vc.Spec.Images.Agent == "" {
		i.assume("image of the agent", "vipgen's table", "only vipgen has one; spec.images.agent gives another")
	}
}

func (i *importer) settlePort(what string, c claims[int], field *int, otherwise int) {
	port, ok := usual(i, what, c)
	switch by := v1alpha1.DefaultPorts.Owner(port.value); {
	case !ok:
		i.assume(what, strconv.Itoa(otherwise), "nothing says another")
	case by != "" && by != "api" && by != "routerHealth":
		i.lose(port.at, fmt.Sprintf("%s, %d", what, port.value), fmt.Sprintf("%d, as vipgen has %d for spec.ports.%s", otherwise, port.value, by))
	default:
		i.carry(what, strconv.Itoa(port.value), port.at)
		if port.value != otherwise {
			*field = port.value
		}
	}
}

// settleRoutes determines the domains of routes besides the usual one.
func (i *importer) settleRoutes(usual string, vc *v1alpha1.VIPConfig) {
	if d, ok := agreed(i, "the domain of routes that name no host", i.appsDomain, "leave out what is of another cluster"); ok && d.value != usual {
		vc.Spec.AppsDomain = d.value
		i.carry("appsDomain", d.value, d.at)
	}
	d, ok := agreed(i, "the domain of the default ingress controller", i.routes, "leave out what is of another cluster")
	if !ok || d.value == usual {
		return
	}
	if len(vc.Spec.Ingress) == 0 {
		vc.Spec.Ingress = []v1alpha1.Ingress{{Name: v1alpha1.DefaultIngress}}
	}
	vc.Spec.Ingress[0].Domains = []string{d.value}
	i.carry("ingress domain", d.value, d.at)
}

// settleVersion takes the release. Clusters of older ones than vipgen renders for are refused:
// what they have in other fields and files is not read.
func (i *importer) settleVersion(vc *v1alpha1.VIPConfig) {
	v, ok := i.version.best()
	known := ignition.SupportedOpenShift()
	switch {
	case !ok:
		i.assume("OpenShift version", "any", "no ClusterVersion; what is rendered is for "+known[0]+" to "+known[len(known)-1])
	case slices.Contains(known, v.value):
		vc.Spec.OpenShiftVersion = v.value
		i.carry("OpenShift version", v.value, v.at)
	case slices.Compare(numbers(v.value), numbers(known[0])) > 0:
		i.lose(v.at, "OpenShift "+v.value, "what is rendered is for "+known[0]+" to "+known[len(known)-1]+"; apply it to a cluster of these")
	default:
		i.add(problem.Problem{File: v.at.File, Line: v.at.Line, Code: problem.UnsupportedVersion, Field: "openshiftVersion", Found: v.value,
			Expected: known[0] + " or later", Hint: "update the cluster first, then export it again"})
	}
}

// numbers returns the numbers of a release, such as "4.18".
func numbers(release string) []int {
	return lists.Map(strings.Split(release, "."), func(s string) int {
		n, _ := strconv.Atoi(s) // releases match a pattern of numbers
		return n
	})
}
