package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

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

func (i *importer) settlePorts(vc *v1alpha1.VIPConfig) {
	i.settlePort("port of the API", i.apiPorts, &vc.Spec.Ports.API, v1alpha1.DefaultPorts.API)
	i.settlePort("port of the router's health", i.routerPorts, &vc.Spec.Ports.RouterHealth, v1alpha1.DefaultPorts.RouterHealth)
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

// settleDNS takes fixed upstreams, and names that are neither the cluster's own nor its nodes'.
func (i *importer) settleDNS(ic *installFile, vc *v1alpha1.VIPConfig) {
	if u, ok := i.upstreams.best(); ok {
		vc.Spec.DNS.Upstreams = u.value
		i.carry("upstream servers", lists.Join(u.value, ", "), u.at)
	}
	domain := ic.Metadata.Name + "." + ic.BaseDomain
	at := map[string]int{}
	for _, l := range i.hostLines.sorted() {
		if l.value.isNode(domain) {
			continue // vipgen answers for nodes by itself
		}
		if why := v1alpha1.UsableAddress(l.value.addr); why != "" {
			i.lose(l.at, "Corefile: names at "+why, "nothing: records have addresses of hosts")
			continue
		}
		for _, name := range l.value.names {
			switch {
			case !strings.Contains(name, "."):
				i.lose(l.at, "Corefile: a name of one label, "+shown(name), "nothing: records have full names")
				continue
			case name == "api."+domain, name == "api-int."+domain:
				i.lose(l.at, "Corefile: another answer for "+name, "the API VIPs")
				continue
			}
			n, known := at[name]
			if !known {
				n = len(vc.Spec.DNS.Records)
				at[name] = n
				vc.Spec.DNS.Records = append(vc.Spec.DNS.Records, v1alpha1.DNSRecord{Name: name})
				i.carry("DNS record", name, l.at)
			}
			if rec := &vc.Spec.DNS.Records[n]; !slices.Contains(rec.Addresses, l.value.addr) {
				rec.Addresses = append(rec.Addresses, l.value.addr)
			}
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

func (i *importer) settleVersion(vc *v1alpha1.VIPConfig) {
	v, ok := i.version.best()
	known := ignition.SupportedOpenShift()
	switch {
	case !ok:
		i.assume("OpenShift version", "any", "no ClusterVersion; what is rendered is for "+known[0]+" to "+known[len(known)-1])
	case !slices.Contains(known, v.value):
		i.lose(v.at, "OpenShift "+v.value, "what is rendered is for "+known[0]+" to "+known[len(known)-1]+"; apply it to a cluster of these")
	default:
		vc.Spec.OpenShiftVersion = v.value
		i.carry("OpenShift version", v.value, v.at)
	}
}
