package importer

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/installconfig"
	"github.com/vipgen/vipgen/render/source"
)

// readConfigMap reads the install-config of the installation, which OpenShift keeps without its
// secrets.
func (i *importer) readConfigMap(doc *source.Document, h header) {
	var m configMap
	if h.Metadata.Name == "bgp-vip-config" && i.decode(doc, &m) {
		config, list := source.Parse(doc.File+"#bgp-vip-config:config.json", []byte(m.Data.BGPVIPConfig))
		i.routersNow, i.list = config, append(i.list, list...)
		return
	}
	if h.Metadata.Name != "cluster-config-v1" || !i.decode(doc, &m) || m.Data.InstallConfig == "" {
		return
	}
	i.found = true
	file := doc.File + "#cluster-config-v1:install-config"
	c, list := installconfig.Read(file, []byte(m.Data.InstallConfig))
	if c == nil {
		i.list = append(i.list, list.Errors()...)
		return
	}
	at := func(field string) Place { return position(c.Doc, field) }
	i.keepPreview(c, list)
	if c.Name != "" && c.BaseDomain != "" {
		i.name.add(c.Name, at("metadata.name"), byInstaller)
		i.domain.add(c.Name+"."+c.BaseDomain, at("metadata.name"), byInstaller)
	}
	if c.Platform != "" {
		i.platform.add(c.Platform, at("platform"), byInstaller)
	}
	if len(c.MachineNetworks) > 0 && !c.MachineNetworks[0].Default {
		i.machineNetworks.add(installconfig.Prefixes(c.MachineNetworks), at("networking"), byInstaller)
	}
	if len(c.ClusterNetworks) > 0 && !c.ClusterNetworks[0].Default {
		i.clusterNetworks.add(installconfig.Prefixes(c.ClusterNetworks), at("networking"), byInstaller)
		for _, n := range c.ClusterNetworks {
			i.knowHostPrefix(n.Prefix, n.HostPrefix)
		}
	}
	if len(c.ServiceNetworks) > 0 && !c.ServiceNetworks[0].Default {
		i.serviceNetworks.add(installconfig.Prefixes(c.ServiceNetworks), at("networking"), byInstaller)
	}
	if c.NetworkType != "" {
		i.networkType.add(c.NetworkType, at("networking.networkType"), byInstaller)
	}
	for _, v := range []struct {
		claims *claims[[]netip.Addr]
		list   []installconfig.Address
	}{{&i.api, c.APIVIPs}, {&i.ingress, c.IngressVIPs}} {
		list := lists.Map(v.list, func(a installconfig.Address) netip.Addr { return a.Addr })
		if len(list) > 0 {
			v.claims.add(list, at(v.list[0].Field), byInstaller)
		}
	}
	i.external.add(c.LoadBalancer == "UserManaged", at("platform"), byInstaller)
	i.externalDNS.add(c.ExternalDNS, at("platform"), byInstaller)
	i.masters.add(c.ControlPlane.Replicas, at(c.ControlPlane.Field), byInstaller)
	if c.Arbiter != nil {
		i.arbiters.add(c.Arbiter.Replicas, at("arbiter"), byInstaller)
	}
	workers := 0
	for _, p := range c.Compute {
		workers += p.Replicas
	}
	i.workers.add(workers, at("compute"), byInstaller)
}

func (i *importer) readNode(doc *source.Document, h header) {
	var n nodeObject
	if h.APIVersion != "v1" || !i.decode(doc, &n) {
		return
	}
	role := ""
	for _, r := range []string{v1alpha1.RoleMaster, "control-plane", v1alpha1.RoleArbiter, v1alpha1.RoleWorker} {
		if _, ok := n.Metadata.Labels[v1alpha1.RoleLabel(r)]; ok {
			role = strings.Replace(r, "control-plane", v1alpha1.RoleMaster, 1)
			break
		}
	}
	if role != "" {
		if i.nodes == nil {
			i.nodes = map[string]map[string]bool{}
		}
		if i.nodes[role] == nil {
			i.nodes[role] = map[string]bool{}
		}
		i.nodes[role][n.Metadata.Name] = true
	}
	var list []string
	var host []netip.Prefix
	defer func() { i.addNode(doc, &n, host) }()
	if json.Unmarshal([]byte(n.Metadata.Annotations.HostCIDRs), &list) != nil {
		return // not OVN-Kubernetes, or an older one
	}
	for _, text := range list {
		if p, err := netip.ParsePrefix(text); err == nil && p.Bits() < p.Addr().BitLen() {
			host = append(host, p)
			i.hostNetworks.add(p.Masked(), position(doc, `metadata.annotations["k8s.ovn.org/host-cidrs"]`), byNode)
		}
	}
}

func (i *importer) countNodes() {
	if len(i.nodes[v1alpha1.RoleMaster]) == 0 {
		return // not the list of all nodes
	}
	for role, c := range map[string]*claims[int]{v1alpha1.RoleMaster: &i.masters, v1alpha1.RoleArbiter: &i.arbiters, v1alpha1.RoleWorker: &i.workers} {
		if n := len(i.nodes[role]); n > 0 || role == v1alpha1.RoleWorker {
			c.add(n, Place{File: fmt.Sprintf("the Nodes with the role %s", role)}, byNode)
		}
	}
}
