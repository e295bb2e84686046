package importer

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render/source"
)

// The types in this file declare the fields that are read of objects. Other fields, such as
// pull secrets and certificates, are never decoded.

type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

type controllerConfig struct {
	Spec struct {
		Infra        infrastructure    `json:"infra"`
		DNS          dnsConfig         `json:"dns"`
		Images       map[string]string `json:"images"`
		ReleaseImage string            `json:"releaseImage"`
	} `json:"spec"`
}

type dnsConfig struct {
	Spec struct {
		BaseDomain string `json:"baseDomain"`
	} `json:"spec"`
}

type infrastructure struct {
	Status struct {
		APIServerInternalURI string         `json:"apiServerInternalURI"`
		ControlPlaneTopology string         `json:"controlPlaneTopology"`
		PlatformStatus       platformStatus `json:"platformStatus"`
	} `json:"status"`
}

type platformStatus struct {
	Type      string       `json:"type"`
	BareMetal *platformVIP `json:"baremetal"`
	VSphere   *platformVIP `json:"vsphere"`
	OpenStack *platformVIP `json:"openstack"`
	Ovirt     *platformVIP `json:"ovirt"`
	Nutanix   *platformVIP `json:"nutanix"`
}

type platformVIP struct {
	APIServerInternalIPs []netip.Addr `json:"apiServerInternalIPs"`
	IngressIPs           []netip.Addr `json:"ingressIPs"`
	LoadBalancer         struct {
		Type string `json:"type"`
	} `json:"loadBalancer"`
	DNSRecords      string         `json:"dnsRecordsType"` // of the Infrastructure, since 4.21
	VIPManagement   string         `json:"vipManagement"`  // Keepalived or BGP, since 5.0
	MachineNetworks []netip.Prefix `json:"machineNetworks"`
}

type networkConfig struct {
	Status struct {
		NetworkType    string `json:"networkType"`
		ClusterNetwork []struct {
			CIDR       netip.Prefix `json:"cidr"`
			HostPrefix int          `json:"hostPrefix"`
		} `json:"clusterNetwork"`
		ServiceNetwork []netip.Prefix `json:"serviceNetwork"`
	} `json:"status"`
}

type clusterIngress struct {
	Spec struct {
		Domain     string `json:"domain"`
		AppsDomain string `json:"appsDomain"`
	} `json:"spec"`
}

type clusterVersion struct {
	Status struct {
		Desired struct {
			Version string `json:"version"`
		} `json:"desired"`
	} `json:"status"`
}

type nodeObject struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		// Of annotations, those of OVN-Kubernetes alone.
		Annotations struct {
			HostCIDRs string `json:"k8s.ovn.org/host-cidrs"`
		} `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Addresses []struct {
			Type    string `json:"type"`
			Address string `json:"address"`
		} `json:"addresses"`
	} `json:"status"`
}

type configPool struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Configuration struct {
			Name string `json:"name"`
		} `json:"configuration"`
		MachineCount *int `json:"machineCount"`
	} `json:"status"`
}

type configMap struct {
	Data struct {
		InstallConfig string `json:"install-config"`
		BGPVIPConfig  string `json:"config.json"`
	} `json:"data"`
}

// daemons lists the daemons whose images the ControllerConfig has.
var daemons = []string{"keepalived", "haproxy", "coredns"}

var kinds = map[string]func(*importer, *source.Document, header){
	"ControllerConfig": (*importer).readControllerConfig,
	"Infrastructure": config(func(i *importer, doc *source.Document, f *infrastructure) {
		i.found = true
		i.infrastructure(doc, "", f)
	}),
	"DNS":            config((*importer).readDNS),
	"Ingress":        config((*importer).readIngress),
	"Network":        config((*importer).readNetwork),
	"ClusterVersion": config((*importer).readClusterVersion),
	"Node":           (*importer).readNode,
	"ConfigMap":      (*importer).readConfigMap,

	"BGPPeer": (*importer).keepMetalLB, "BFDProfile": (*importer).keepMetalLB, "BGPAdvertisement": (*importer).keepMetalLB,
}

// config returns a reader of a kind of config.openshift.io: others may have the same name.
func config[T any](read func(*importer, *source.Document, *T)) func(*importer, *source.Document, header) {
	return func(i *importer, doc *source.Document, h header) {
		var v T
		if strings.HasPrefix(h.APIVersion, "config.openshift.io/") && i.decode(doc, &v) {
			read(i, doc, &v)
		}
	}
}

func (i *importer) decode(doc *source.Document, into any) bool {
	list := doc.Decode(into)
	i.list = append(i.list, list.Errors()...)
	return list.Err() == nil
}

func (i *importer) readControllerConfig(doc *source.Document, _ header) {
	var c controllerConfig
	if !i.decode(doc, &c) {
		return
	}
	i.found = true
	i.infrastructure(doc, "spec.infra.", &c.Spec.Infra)
	i.clusterDomain(doc, "spec.dns.spec.baseDomain", c.Spec.DNS.Spec.BaseDomain)
	for _, name := range daemons {
		for _, key := range []string{name + "Image", name} {
			if image := c.Spec.Images[key]; image != "" {
				i.image(name, image, position(doc, "spec.images."+key))
				break
			}
		}
	}
	if m := regexp.MustCompile(`:([45]\.[0-9]+)\.[0-9A-Za-z_.-]+$`).FindStringSubmatch(c.Spec.ReleaseImage); m != nil {
		i.version.add(m[1], position(doc, "spec.releaseImage"), byManifest)
	}
}

// image records an image, if its reference is valid.
func (i *importer) image(name, image string, at Place) {
	if !v1alpha1.ValidImage(image) {
		i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadImage, Field: name, Found: "something else", Expected: "the reference of a container image"})
		return
	}
	i.images[name] = append(i.images[name], claim[string]{image, at, byState})
}

func (i *importer) infrastructure(doc *source.Document, at string, f *infrastructure) {
	s := &f.Status
	status := at + "status."
	if u, err := url.Parse(s.APIServerInternalURI); err == nil && s.APIServerInternalURI != "" {
		if domain, ok := strings.CutPrefix(u.Hostname(), "api-int."); ok {
			i.clusterDomain(doc, status+"apiServerInternalURI", domain)
		}
		addPort(&i.apiPorts, u.Port(), position(doc, status+"apiServerInternalURI"), byState)
	}
	if i.word(doc, status+"controlPlaneTopology", s.ControlPlaneTopology) {
		i.topology.add(s.ControlPlaneTopology, position(doc, status+"controlPlaneTopology"), byState)
	}
	p := &s.PlatformStatus
	i.platformName(doc, status+"platformStatus.type", p.Type)
	for _, v := range []struct {
		name string
		*platformVIP
	}{{"baremetal", p.BareMetal}, {"vsphere", p.VSphere}, {"openstack", p.OpenStack}, {"ovirt", p.Ovirt}, {"nutanix", p.Nutanix}} {
		if v.platformVIP != nil {
			i.platformVIPs(doc, status+"platformStatus."+v.name+".", v.platformVIP)
		}
	}
}

func (i *importer) platformVIPs(doc *source.Document, at string, p *platformVIP) {
	if len(p.APIServerInternalIPs) > 0 {
		i.api.add(p.APIServerInternalIPs, position(doc, at+"apiServerInternalIPs"), byState)
	}
	if len(p.IngressIPs) > 0 {
		i.ingress.add(p.IngressIPs, position(doc, at+"ingressIPs"), byState)
	}
	if t := p.LoadBalancer.Type; t != "" {
		i.external.add(t == "UserManaged", position(doc, at+"loadBalancer.type"), byState)
	}
	if t := p.DNSRecords; t != "" {
		i.externalDNS.add(t == "External", position(doc, at+"dnsRecordsType"), byState)
	}
	if p.VIPManagement == "BGP" {
		i.managed = position(doc, at+"vipManagement")
	}
	if len(p.MachineNetworks) > 0 {
		i.machineNetworks.add(p.MachineNetworks, position(doc, at+"machineNetworks"), byState)
	}
}

// clusterDomain records "<name>.<base domain>".
func (i *importer) clusterDomain(doc *source.Document, field, domain string) {
	domain = strings.TrimSuffix(domain, ".")
	if domain == "" {
		return
	}
	at := position(doc, field)
	if !v1alpha1.ValidName(domain) || !strings.Contains(domain, ".") {
		i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadName, Field: field, Found: problem.Quote(domain), Expected: "<cluster name>.<base domain>"})
		return
	}
	i.domain.add(domain, at, byState)
}

// platformName records the platform in the install-config's spelling.
func (i *importer) platformName(doc *source.Document, field, name string) {
	if name = strings.ToLower(name); i.word(doc, field, name) {
		i.platform.add(name, position(doc, field), byState)
	}
}

// word reports whether text is a plain word, which can be shown, and reports a problem with any
// other.
func (i *importer) word(doc *source.Document, field, text string) bool {
	if text == "" || plainName().MatchString(text) {
		return text != ""
	}
	at := position(doc, field)
	i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadValue, Field: field, Found: "something else", Expected: "a word of letters and digits"})
	return false
}

func (i *importer) readDNS(doc *source.Document, d *dnsConfig) {
	if d.Spec.BaseDomain != "" {
		i.found = true
		i.clusterDomain(doc, "spec.baseDomain", d.Spec.BaseDomain)
	}
}

func (i *importer) readIngress(doc *source.Document, in *clusterIngress) {
	for _, d := range []struct {
		field, domain string
		into          *claims[string]
	}{{"spec.domain", in.Spec.Domain, &i.routes}, {"spec.appsDomain", in.Spec.AppsDomain, &i.appsDomain}} {
		switch at := position(doc, d.field); {
		case d.domain == "":
		case !v1alpha1.ValidName(d.domain):
			i.add(problem.Problem{File: at.File, Line: at.Line, Code: problem.BadName, Field: d.field, Found: problem.Quote(d.domain), Expected: "a domain such as apps.example.net"})
		default:
			d.into.add(d.domain, at, byState)
		}
	}
}

func (i *importer) readNetwork(doc *source.Document, n *networkConfig) {
	s := &n.Status
	if i.word(doc, "status.networkType", s.NetworkType) {
		i.networkType.add(s.NetworkType, position(doc, "status.networkType"), byState)
	}
	var cluster []netip.Prefix
	for _, c := range s.ClusterNetwork {
		cluster = append(cluster, c.CIDR)
		i.knowHostPrefix(c.CIDR, c.HostPrefix)
	}
	if len(cluster) > 0 {
		i.clusterNetworks.add(cluster, position(doc, "status.clusterNetwork"), byState)
	}
	if len(s.ServiceNetwork) > 0 {
		i.serviceNetworks.add(s.ServiceNetwork, position(doc, "status.serviceNetwork"), byState)
	}
}

// knowHostPrefix records the prefix length of each node's part of a cluster network.
func (i *importer) knowHostPrefix(network netip.Prefix, bits int) {
	if i.hostPrefixes == nil {
		i.hostPrefixes = map[netip.Prefix]int{}
	}
	i.hostPrefixes[network.Masked()] = bits
}

func (i *importer) readClusterVersion(doc *source.Document, v *clusterVersion) {
	if m := regexp.MustCompile(`^([45]\.[0-9]+)\.`).FindStringSubmatch(v.Status.Desired.Version); m != nil {
		i.version.add(m[1], position(doc, "status.desired.version"), byState)
	}
}
