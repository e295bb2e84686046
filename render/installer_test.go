package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/render"
)

// The rules of OpenShift's installer (pkg/types/validation/installconfig.go), each in
// both directions: what it takes is rendered, with the codes of warnings, what it refuses
// is refused with these codes. The base has machineNetwork 192.0.2.0/24; "+" adds the
// second family to all networks.
func TestInstallersRules(t *testing.T) {
	const (
		agent    = "apiVersion: v1beta1\nrendezvousIP: 192.0.2.10\n"
		external = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: External}}\n"
		in       = "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.6]"
		out      = "apiVIPs: [198.51.100.5], ingressVIPs: [198.51.100.6]"
		same     = "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.5]"
		dual     = `apiVIPs: [192.0.2.5, "2001:db8::5"], ingressVIPs: [192.0.2.6, "2001:db8::6"]`
		turned   = `apiVIPs: ["2001:db8::5", 192.0.2.5], ingressVIPs: ["2001:db8::6", 192.0.2.6]`
		users    = ", loadBalancer: {type: UserManaged}"
		ovirt    = "api_vips: [192.0.2.5], ingress_vips: [192.0.2.6]"
		ovirtOut = "api_vips: [198.51.100.5], ingress_vips: [198.51.100.6]"
		vips     = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {apiVIPs: [198.51.100.5], ingressVIPs: [198.51.100.6]}\n"
	)
	const without = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {loadBalancer: {type: None}}\n"
	for _, tt := range []struct {
		platform string // "name: settings", "+" in front for dual-stack
		more     string // lines of the install-config, "old=>new" to replace text
		agent    string
		vip      string
		version  string
		want     string // "severity code" of each problem, in order
	}{
		// VIPs inside of machineNetwork, or outside.
		{platform: "baremetal: " + in},
		{platform: "baremetal: " + out, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "baremetal: " + out + users, want: "warning vip-outside-network"},
		{platform: "baremetal: " + out + users, vip: external},
		{platform: "openstack: " + in},
		{platform: "openstack: " + out, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "openstack: " + out + users, want: "warning vip-outside-network"},
		{platform: "vsphere: " + in},
		{platform: "vsphere: " + out, want: "warning vip-outside-network"},
		{platform: "vsphere: " + in, agent: agent},
		{platform: "vsphere: " + out, agent: agent, want: "error vip-outside-network, error vip-outside-network"},
		{platform: "vsphere: " + out + users, agent: agent, want: "warning vip-outside-network, warning rendezvous-vip"},
		{platform: "vsphere: apiVIPs: [192.0.2.5], ingressVIPs: [198.51.100.6]", want: "warning vip-outside-network"},
		{platform: "nutanix: " + in},
		{platform: "nutanix: " + out, want: "warning vip-outside-network"},
		{platform: "nutanix: " + out, agent: agent, want: "warning vip-outside-network"},
		{platform: "ovirt: " + ovirt},
		{platform: "ovirt: " + ovirtOut, want: "warning vip-outside-network"},
		{platform: "ovirt: " + ovirtOut, version: "4.12", want: "error vip-outside-network, error vip-outside-network"},
		{platform: "ovirt: " + ovirtOut + users, version: "4.13", want: "warning vip-outside-network"},
		{platform: "ovirt: " + ovirt, version: "4.14", want: "warning needs-version"},
		{platform: "none: ", vip: vips, want: "warning vip-outside-network"},
		{platform: "external: ", vip: vips, want: "warning vip-outside-network"},

		// Who holds the API VIP on the rendezvous host.
		{platform: "baremetal: " + in, agent: agent},
		{platform: "baremetal: " + in + users, agent: agent, want: "warning rendezvous-vip"},
		{platform: "baremetal: " + in + users, agent: agent, vip: external},
		{platform: "baremetal: " + in + users},
		{platform: "none: ", vip: strings.ReplaceAll(vips, "198.51.100", "192.0.2"), agent: agent, want: "warning rendezvous-vip"},
		{platform: "none: ", vip: without, more: "controlPlane: {replicas: 1}", agent: agent},

		// VIPs that are needed, or not.
		{platform: "baremetal: ", want: "error no-vips"},
		{platform: "openstack: "}, // the installer's default
		{platform: "vsphere: ", want: "error no-vips"},
		{platform: "nutanix: ", want: "error no-vips"},
		{platform: "vsphere: apiVIPs: [192.0.2.5]", want: "error no-vips"},
		{platform: "vsphere: ingressVIPs: [192.0.2.6]", want: "error no-vips"},
		{platform: "none: ", want: "error no-vips"},

		// API and ingress at one address.
		{platform: "baremetal: " + same, want: "error vip-taken"},
		{platform: "vsphere: " + same, want: "error vip-taken"},
		{platform: "vsphere: " + same + users, want: "error vip-taken"}, // nodes cannot hold it twice
		{platform: "vsphere: " + same + users, vip: external},

		// Families, and their order.
		{platform: "+baremetal: " + dual},
		{platform: "+baremetal: " + in},
		{platform: "+baremetal: " + turned, want: "error family-order, error family-order"}, // contradicts machineNetwork
		{platform: "+nutanix: " + turned, want: "warning family-order, warning family-order"},
		{platform: "+ovirt: " + strings.NewReplacer("apiVIPs", "api_vips", "ingressVIPs", "ingress_vips").Replace(turned), want: "warning family-order, warning family-order"},
		{platform: "baremetal: apiVIPs: [192.0.2.5, 192.0.2.7], ingressVIPs: [192.0.2.6]", want: "error bad-value"},
		{platform: "baremetal: " + in, more: "192.0.2.0/24=>192.0.2.1/24", want: "error bad-network"},

		// Networks that overlap.
		{platform: "baremetal: " + in, more: "  - cidr: 198.51.100.0/24"},
		{platform: "baremetal: " + in, more: "  - cidr: 192.0.2.128/25", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [10.129.0.0/16]", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  serviceNetwork: [10.200.0.0/16]"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 172.30.0.0/15}]", want: "error networks-overlap"},
		{platform: "baremetal: " + in, more: "  clusterNetwork: [{cidr: 10.132.0.0/14}]"},

		// Pools.
		{platform: "baremetal: " + in, more: "controlPlane: {name: master}"},
		{platform: "baremetal: " + in, more: "controlPlane: {name: control}", want: "error bad-name"},
		{platform: "baremetal: " + in, more: "compute: [{name: worker}]"},
		{platform: "baremetal: " + in, more: "compute: [{name: infra}]", want: "warning bad-name"},
		{platform: "baremetal: " + in, more: "compute: [{name: worker}, {name: worker}]", want: "error bad-name"},

		// Spelling.
		{platform: "baremetal: apivips: [192.0.2.5], ingressVips: [192.0.2.6]", want: "warning unknown-field, warning unknown-field"},
		{platform: "baremetal: " + in, more: "baseDomain=>basedomain", want: "warning unknown-field"},
		{platform: "baremetal: " + in, agent: agent},
		{platform: "baremetal: " + in, agent: agent + "kind: AgentConfig\n"},
		{platform: "baremetal: " + in, agent: agent + "kind: Infrastructure\n", want: "error wrong-kind"}, // another file
		{platform: "baremetal: apiVIP: 192.0.2.5, ingressVIP: 192.0.2.6", want: "warning deprecated"},

		// Platforms without VIPs.
		{platform: "aws: ", want: "error cloud-platform"},
		{platform: "powervc: ", want: "error bad-value"},
		{platform: "libvirt: ", want: "error bad-value"},
	} {
		text := "apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: demo}\nnetworking:\n  machineNetwork:\n  - cidr: 192.0.2.0/24\n"
		platform, dualStack := strings.CutPrefix(tt.platform, "+")
		if dualStack {
			text += "  - cidr: 2001:db8::/64\n"
		}
		old, fresh, replace := strings.Cut(tt.more, "=>")
		if replace {
			text = strings.Replace(text, old, fresh, 1)
		} else if tt.more != "" {
			text += tt.more + "\n"
		}
		name, settings, _ := strings.Cut(platform, ": ")
		text += fmt.Sprintf("platform: {%s: {%s}}\n", name, settings)
		s := render.Sources{InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(text)}}
		if tt.agent != "" {
			s.AgentConfig = &render.File{Name: "agent-config.yaml", Data: []byte(tt.agent)}
		}
		if tt.vip != "" {
			s.VIPConfig = &render.File{Name: "vipgen.yaml", Data: []byte(tt.vip)}
		}
		c, list, err := render.Load(s, render.Options{OpenShiftVersion: tt.version})
		var got []string
		for _, p := range list {
			got = append(got, fmt.Sprintf("%s %s", p.Severity, p.Code))
			if p.Line == 0 || p.Column == 0 {
				t.Errorf("no place: %s", p)
			}
		}
		if strings.Join(got, ", ") != tt.want {
			t.Errorf("%s %s: %q, want %q\n%s", tt.platform, tt.more, strings.Join(got, ", "), tt.want, list.Error())
		}
		if refused := strings.Contains(tt.want, "error"); refused != (err != nil) || refused != (c == nil) {
			t.Errorf("%s %s: %v, rendered %t", tt.platform, tt.more, err, c != nil)
		}
	}
}
