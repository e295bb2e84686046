package installconfig

import (
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/lists"
)

// Keys of the platforms with fields read here.
const (
	baremetal = "baremetal"
	vsphere   = "vsphere"
	openstack = "openstack"
	ovirt     = "ovirt"
	nutanix   = "nutanix"
)

var onPremises, clouds, others = assets.PlatformNames(assets.OnPremises), assets.PlatformNames(assets.Cloud), assets.PlatformNames(assets.OtherPlatform)

func (r *reader) platform(c *InstallConfig, in *filePlatform) {
	c.Platform = r.choosePlatform()
	switch c.Platform {
	case baremetal:
		r.virtualIPs(c, &in.BareMetal.fileVIPs, spelling)
		c.BGP = r.bgp(&in.BareMetal.BGP, in.BareMetal.Hosts)
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
	if assets.PlatformNamed(c.Platform).Bare() {
		r.noVIPs("platform." + c.Platform + ".")
	}
}

// noVIPs reports VIP fields of other platforms.
func (r *reader) noVIPs(at string) {
	for _, name := range []string{"apiVIPs", "apiVIP", "ingressVIPs", "ingressVIP", "dnsVIP", "loadBalancer", "dnsRecordsType"} {
		if r.doc.Has(at + name) {
			r.add(problem.UnknownField, at+name, problem.Quote(name), "no VIPs here, as OpenShift's installer has none on this platform",
				"vipgen.yaml has the fields spec.apiVIPs, spec.ingressVIPs and spec.loadBalancer")
		}
	}
}

// choosePlatform returns the only platform of the file, or "". It reads keys alone: some
// platforms hold credentials.
func (r *reader) choosePlatform() string {
	if r.refused["platform"] || r.refused[""] {
		r.platformAsText()
		return ""
	}
	here, cloud, other := r.present(onPremises), r.present(clouds), r.present(others)
	all := slices.Concat(here, cloud, other)
	if len(all) == 0 {
		other = r.doc.Keys("platform")
	}
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
	case len(other) > 0:
		hint := "if its machines are installed as plain hosts, use platform none and give the VIPs in vipgen.yaml"
		if !slices.Contains(others, other[0]) {
			hint = "vipgen knows no such platform; " + hint
		}
		// The decoder has reported them as unknown fields.
		r.problems = slices.DeleteFunc(r.problems, func(p problem.Problem) bool {
			return p.Code == problem.UnknownField && (p.Path() == "platform" || p.Path() == "platform."+other[0])
		})
		r.add(problem.BadValue, "platform", "the platform "+problem.Quote(other[0])+", which has no VIPs that vipgen could render",
			"one of "+strings.Join(onPremises, ", "), hint)
	default:
		r.add(problem.MissingField, "platform", "nothing", "one of "+strings.Join(onPremises, ", "),
			"a platform without settings is written with braces, as in none: {}")
	}
	return ""
}

// platformAsText explains how to write a platform that is given as text.
func (r *reader) platformAsText() {
	text := r.doc.Text("platform")
	if !slices.Contains(onPremises, text) {
		return
	}
	for i := range r.problems {
		if p := &r.problems[i]; p.Field == "platform" && p.Code == problem.WrongType {
			p.Found = "the text " + problem.Quote(text)
			p.Hint = "a platform without settings is written with braces: platform: {" + text + ": {}}"
		}
	}
}

func (r *reader) present(names []string) []string {
	return lists.Filter(names, func(name string) bool { return r.doc.Has("platform." + name) })
}
