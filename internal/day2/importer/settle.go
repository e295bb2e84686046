package importer

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render"
)

// settle decides on the evidence, writes the input, and checks that vipgen reads and resolves
// it.
func (i *importer) settle() *Result {
	var ic installFile
	var vc v1alpha1.VIPConfig
	ic.APIVersion = "v1"
	vc.APIVersion, vc.Kind = v1alpha1.APIVersion, v1alpha1.KindVIPConfig
	i.settleNames(&ic)
	platform := i.settlePlatform()
	i.settleVIPs(&ic, &vc, platform)
	i.settleRemoteWorkers(platform)
	i.settleNetworks(&ic)
	i.settlePools(&ic, &vc)
	i.settleImages(&vc)
	i.routerHealth()
	i.settlePort("port of the API", i.apiPorts, &vc.Spec.Ports.API, v1alpha1.DefaultPorts.API)
	i.settlePort("port of the router's health", i.routerPorts, &vc.Spec.Ports.RouterHealth, v1alpha1.DefaultPorts.RouterHealth)
	i.settleBGP(&vc)
	if vc.Spec.LoadBalancer.Type != v1alpha1.LoadBalancerExternal && !vc.Spec.Announce.Routed() {
		i.settleVRRP(&ic, &vc)
	}
	i.settleRoutes("apps."+ic.Metadata.Name+"."+ic.BaseDomain, &vc)
	i.settleVersion(&vc)
	ic.setFeatureSet(vc.Spec.OpenShiftVersion)
	vc.Spec.Manifests.NodeDisruptionPolicy = i.given.DisruptionPolicy
	if i.list.Err() != nil {
		return nil
	}
	i.result.Domain = ic.Metadata.Name + "." + ic.BaseDomain
	i.result.InstallConfig = ic.text()
	i.proveReadable(&vc)
	i.order()
	return &i.result
}

// settleNames determines the cluster's name and base domain. Names may have several labels, so
// the domain alone does not show where the name ends.
func (i *importer) settleNames(ic *installFile) {
	if i.given.ClusterName != "" {
		i.name.add(i.given.ClusterName, Place{}, byUser)
	}
	domain, known := agreed(i, "the cluster's domain", i.domain, "leave out what is of another cluster")
	if given := i.given.BaseDomain; given != "" {
		ic.BaseDomain = given
		if name, ok := strings.CutSuffix(domain.value, "."+given); ok {
			i.name.add(name, domain.at, byUser)
		}
	}
	if known {
		i.guessName(domain)
	}
	name, ok := agreed(i, "the cluster's name", i.name, "leave out what is of another cluster, or give --cluster-name")
	switch {
	case !ok && !known:
		i.add(problem.Problem{Code: problem.MissingField, Field: "metadata.name", Found: "no name of the cluster",
			Expected: "a rendered keepalived.conf, or the ControllerConfig or Infrastructure", Hint: "or give --cluster-name and --base-domain"})
		return
	case !ok:
		return // guessName always finds one
	case ic.BaseDomain == "" && !known:
		i.add(problem.Problem{Code: problem.MissingField, Field: "baseDomain", Found: "no domain of the cluster",
			Expected: "the ControllerConfig or Infrastructure", Hint: "or give --base-domain"})
		return
	case ic.BaseDomain == "":
		base, within := strings.CutPrefix(domain.value, name.value+".")
		if !within {
			i.add(problem.Problem{File: name.at.File, Line: name.at.Line, Code: problem.ConflictingFields, Field: "metadata.name", Found: problem.Quote(name.value),
				Expected: fmt.Sprintf("the beginning of %q, as in %s", domain.value, domain.at.String()), Hint: "leave out what is of another cluster, or give --cluster-name"})
			return
		}
		ic.BaseDomain = base
	}
	ic.Metadata.Name = name.value
	i.carry("cluster name", name.value, name.at)
	i.carry("base domain", ic.BaseDomain, domain.at)
}

// guessName takes the domain's first label for the name where no node shows it, as OpenShift's
// own keepalived does on running nodes (baremetal-runtimecfg, pkg/config:
// GetKubeconfigClusterNameAndDomain), even if the cluster was installed with a name of several
// labels. Virtual router IDs and passwords depend on it.
func (i *importer) guessName(domain claim[string]) {
	if known, ok := i.name.best(); ok && known.rank < byInstaller {
		return
	}
	label, _, _ := strings.Cut(domain.value, ".")
	why := "the first label of " + domain.value + ", which OpenShift's own keepalived uses; a rendered keepalived.conf proves it"
	if installed, ok := i.name.best(); ok {
		if installed.value == label {
			return
		}
		why += ". The cluster was installed as " + installed.value
	}
	i.name.add(label, domain.at, byNode)
	i.assume("cluster name", label, why)
}

func (i *importer) settlePlatform() string {
	p, ok := agreed(i, "the platform", i.platform, "leave out what is of another cluster")
	switch {
	case !ok && len(i.api) > 0:
		i.assume("platform", "none", "the source does not have it; the VIPs are in vipgen.yaml")
		return "none"
	case !ok:
		return "none"
	case assets.PlatformNamed(p.value).Kind != assets.OnPremises:
		i.add(problem.Problem{File: p.at.File, Line: p.at.Line, Code: problem.CloudPlatform, Field: "platform", Found: problem.Quote(p.value),
			Expected: strings.Join(assets.PlatformNames(assets.OnPremises), ", "), Hint: "the others bring their own load balancer and need nothing from vipgen"})
		return "none"
	}
	i.carry("platform", p.value, p.at)
	return p.value
}

func (i *importer) settleVIPs(ic *installFile, vc *v1alpha1.VIPConfig, platform string) {
	api, _ := i.agreedVIPs("the API VIPs", i.api)
	ingress, _ := i.agreedVIPs("the ingress VIPs", i.ingress)
	if len(api.value) == 0 || len(ingress.value) == 0 {
		i.add(problem.Problem{Code: problem.NoVIPs, Found: "no API VIP, or no ingress VIP", Expected: "both, in the ControllerConfig or Infrastructure of OpenShift " + ignition.SupportedOpenShift()[0] + " or later, or a rendered keepalived.conf",
			Hint: "a cluster that carries no VIPs itself needs nothing from vipgen"})
		return
	}
	i.carry("API VIPs", lists.Join(api.value, ", "), api.at)
	i.carry("ingress VIPs", lists.Join(ingress.value, ", "), ingress.at)
	p := platformFile{APIVIPs: api.value, IngressVIPs: ingress.value}
	external := i.settleLoadBalancer()
	if external {
		vc.Spec.LoadBalancer.Type = v1alpha1.LoadBalancerExternal
		p.LoadBalancer = &loadBalancerFile{"UserManaged"}
		if dns, said := agreed(i, "the DNS records", i.externalDNS, ""); said && dns.value {
			i.carry("DNS records", "External: with the site's name servers", dns.at)
			p.DNSRecords = "External"
		}
	}
	if assets.PlatformNamed(platform).Bare() {
		vc.Spec.APIVIPs, vc.Spec.IngressVIPs = api.value, ingress.value
		p = platformFile{}
	}
	ic.Platform = map[string]platformFile{platform: p}
}

// settleLoadBalancer reports whether an external load balancer holds the VIPs. Where keepalived
// runs nevertheless, the nodes do.
func (i *importer) settleLoadBalancer() bool {
	off := i.keepalivedPod && !i.keepalivedRuns
	lb, said := agreed(i, "the load balancer", i.external, "")
	switch {
	case said && lb.value && i.keepalivedPod && i.keepalivedRuns:
		i.assume("load balancer", "in the cluster", "the cluster says UserManaged ("+lb.at.String()+"), but a keepalived pod runs")
		return false
	case said && lb.value:
		i.carry("load balancer", "UserManaged: outside of the cluster", lb.at)
		return true
	case off:
		i.assume("load balancer", "outside of the cluster", "the manifest of keepalived is switched off")
		return true
	}
	return false
}

// settleNetworks determines the machine networks: those that hold the VIPs, by default.
func (i *importer) settleNetworks(ic *installFile) {
	if len(i.given.MachineNetworks) > 0 {
		i.machineNetworks.add(i.given.MachineNetworks, Place{}, byUser)
	}
	if best, ok := i.machineNetworks.best(); ok {
		i.carry("machine networks", lists.Join(best.value, ", "), best.at)
		ic.Networking.Machine = cidrs(best.value)
	} else {
		i.guessNetworks(ic)
	}
	// Installers no longer accept others, and nodes have no use for it.
	if t, ok := i.networkType.best(); ok && t.value != "OpenShiftSDN" && t.value != "Kuryr" {
		ic.Networking.NetworkType = t.value
		i.carry("network type", t.value, t.at)
	}
	if c, ok := i.clusterNetworks.best(); ok {
		for _, n := range c.value {
			n = n.Masked()
			usual := max(23, n.Bits()) // the installer's default
			if n.Addr().Is6() {
				usual = 64
			}
			ic.Networking.Cluster = append(ic.Networking.Cluster, clusterNetworkFile{cidrFile{n}, cmp.Or(i.hostPrefixes[n], usual)})
		}
		i.carry("cluster networks", lists.Join(c.value, ", "), c.at)
	}
	if s, ok := i.serviceNetworks.best(); ok {
		ic.Networking.Service = s.value
		i.carry("service networks", lists.Join(s.value, ", "), s.at)
	}
}

func (i *importer) guessNetworks(ic *installFile) {
	api, ok := new(importer).agreedVIPs("", i.api) // settleVIPs reported its problems
	if !ok {
		return
	}
	for _, vip := range api.value {
		var at claim[netip.Prefix]
		found := false
		for _, c := range slices.Concat(i.vipNetworks.sorted(), i.hostNetworks.sorted()) {
			if c.value.Contains(vip) {
				at, found = c, true
				break
			}
		}
		if !found {
			i.add(problem.Problem{Code: problem.MissingField, Field: "networking.machineNetwork", Found: "no network of the nodes that holds " + vip.String(),
				Expected: "the ConfigMap cluster-config-v1 of kube-system, the Nodes with OVN-Kubernetes, or VIPs with the length of their prefix", Hint: "or give --machine-network, such as 192.168.1.0/24"})
			return
		}
		i.carry("machine network", at.value.String(), at.at)
		ic.Networking.Machine = append(ic.Networking.Machine, cidrFile{at.value})
	}
}

// proveReadable writes the VIPConfig and loads both files as `vipgen render` does. Where rules
// for new installations reject them, it sets that the bootstrap host is gone.
func (i *importer) proveReadable(vc *v1alpha1.VIPConfig) {
	list := i.load(vc)
	if vc.Spec.VRRP.Interoperable == nil && list.Err() != nil {
		before, no := i.result.VIPConfig, false
		vc.Spec.VRRP.Interoperable = &no
		if installed := i.load(vc); len(installed.Errors()) < len(list.Errors()) {
			list = installed
		} else {
			i.result.VIPConfig = before
		}
	}
	for _, p := range list.Errors() {
		p.File, p.Line, p.Column = p.File+" as it would be written", 0, 0
		i.list = append(i.list, p)
	}
}

// load writes the VIPConfig, and returns the problems of the written input.
func (i *importer) load(vc *v1alpha1.VIPConfig) problem.List {
	i.result.VIPConfig = append(vipConfigText(vc), i.commentedRouters()...)
	_, list, _ := render.Load(render.Sources{
		InstallConfig: render.File{Name: InstallConfigName, Data: i.result.InstallConfig},
		VIPConfig:     &render.File{Name: VIPConfigName, Data: i.result.VIPConfig},
	}, render.Options{})
	return list
}

// order sorts the report: facts in the order in which they were settled, losses by place.
func (i *importer) order() {
	for n := range i.result.Lost {
		slices.SortFunc(i.result.Lost[n].Places, Place.compare)
	}
	slices.SortStableFunc(i.result.Lost, func(a, b Loss) int {
		return a.Places[0].compare(b.Places[0])
	})
	if i.result.Lost == nil {
		i.result.Lost = []Loss{}
	}
}
