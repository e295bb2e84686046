package installconfig

import (
	"strings"

	"github.com/vipgen/vipgen/api/problem"
)

// The platforms whose machines carry their own VIPs.
const (
	baremetal = "baremetal"
	vsphere   = "vsphere"
	openstack = "openstack"
	ovirt     = "ovirt"
	nutanix   = "nutanix"
	none      = "none"
	external  = "external"
)

var onPremises = []string{baremetal, vsphere, openstack, ovirt, nutanix, none, external}

// clouds are the platforms of the installer, past and present, that bring a
// load balancer of their own.
var clouds = []string{"alibabacloud", "aws", "azure", "gcp", "ibmcloud", "libvirt", "powervs"}

func (r *reader) platform(c *InstallConfig, in *filePlatform) {
	c.Platform = r.choosePlatform()
	switch c.Platform {
	case baremetal:
		r.virtualIPs(c, &in.BareMetal.fileVIPs, spelling)
		// Only its name is looked at: it may hold passwords of routers.
		if bgp := "platform.baremetal.bgpVIPConfig"; r.doc.Has(bgp) {
			r.add(problem.ConflictingFields, bgp, "VIPs that OpenShift announces by BGP (kube-vip)",
				"no bgpVIPConfig: keepalived would hold the same VIPs, and each would have two owners",
				"remove it to have vipgen's keepalived hold the VIPs; a cluster that keeps it needs nothing from vipgen")
		}
		c.Hosts = r.bareMetalHosts(in.BareMetal.Hosts)
		const field = "platform.baremetal.bootstrapExternalStaticIP"
		if a := in.BareMetal.BootstrapIP; a.IsValid() && r.usable(a, field) {
			c.BootstrapIP = &Address{Addr: a, Field: field}
		}
	case vsphere:
		r.virtualIPs(c, &in.VSphere.fileVIPs, spelling)
		c.Hosts = r.vSphereHosts(in.VSphere.Hosts)
	case openstack:
		r.virtualIPs(c, &in.OpenStack.fileVIPs, spelling)
		openStackDefaults(c, &in.OpenStack.fileVIPs)
		r.floatingIPs(c, &in.OpenStack)
	case nutanix:
		r.virtualIPs(c, &in.Nutanix, spelling)
	case ovirt:
		vips := fileVIPs(in.Ovirt)
		r.virtualIPs(c, &vips, ovirtSpelling)
	}
}

// choosePlatform returns the one platform that the file has, or "". It looks
// at keys alone: some platforms hold credentials.
func (r *reader) choosePlatform() string {
	if r.refused["platform"] || r.refused[""] {
		return ""
	}
	here, cloud := r.present(onPremises), r.present(clouds)
	all := append(here, cloud...)
	switch {
	case len(all) > 1:
		r.add(problem.ConflictingFields, "platform", strings.Join(all, " and "), "one platform", "")
	case len(cloud) == 1:
		r.add(problem.CloudPlatform, "platform."+cloud[0], "the platform "+problem.Quote(cloud[0]),
			"one of "+strings.Join(onPremises, ", "),
			"it brings its own load balancer, so there is nothing to render; "+
				"for machines there that are installed as plain hosts, use platform none and give the VIPs in vipgen.yaml")
	case len(here) == 1:
		return here[0]
	default:
		r.add(problem.MissingField, "platform", "nothing", "one of "+strings.Join(onPremises, ", "),
			"a platform without settings is written with braces, as in none: {}")
	}
	return ""
}

func (r *reader) present(names []string) []string {
	var found []string
	for _, name := range names {
		if r.doc.Has("platform." + name) {
			found = append(found, name)
		}
	}
	return found
}
