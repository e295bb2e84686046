package adopt_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// nodeObject is an exported Node.
func nodeObject(name, address string, labels ...string) render.File {
	text := fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n  labels:\n    node-role.kubernetes.io/worker: \"\"\n", name)
	for _, l := range labels {
		text += "    " + l + ": \"\"\n"
	}
	text += fmt.Sprintf("status:\n  addresses:\n  - {type: Hostname, address: %s}\n  - {type: InternalIP, address: %s}\n", name, address)
	return render.File{Name: name + ".yaml", Data: []byte(text)}
}

// Nodes keep their addresses, whatever hints a MachineConfig has, unless the address is a VIP,
// which is reported.
func TestHardCase47Adopt(t *testing.T) {
	hint := config{name: "99-worker-hint", pool: "worker", files: map[string]string{"/etc/default/nodeip-configuration": "NODEIP_HINT=192.0.2.1\nKUBELET_NODEIP_HINT=192.0.2.1\n"}}
	files := append(usual.export("4.18", hint), nodeObject("worker-0", "172.22.0.30"), nodeObject("worker-1", "192.0.2.7"))
	notes := strings.Join(planned(t, files, adopt.Options{}).Notes, "\n")
	testkit.Contains(t, notes, `node "worker-1" is listed at 192.0.2.7, which is a VIP`)
	testkit.Lacks(t, notes, "worker-0")
}

// On platform external before 4.17 the operator writes no drop-in: of a Node's addresses, the
// one in the VIPs' network would become the first.
func TestHardCase47AdoptExternal(t *testing.T) {
	for _, tt := range []struct{ name, release, platform, addresses, host, want string }{
		{"another first", "4.16", "external", "172.22.0.30 192.0.2.30", "172.22.0.30/24 192.0.2.30/24", `node "worker-0" is listed at 172.22.0.30 first, and vipgen-agent would choose 192.0.2.30`},
		{"first", "4.16", "external", "192.0.2.30 172.22.0.30", "172.22.0.30/24 192.0.2.30/24", ""},
		{"not listed", "4.16", "external", "172.22.0.30", "172.22.0.30/24 192.0.2.30/24", ""},
		{"another family", "4.16", "external", "2001:db8::30 192.0.2.30", "2001:db8::30/64 192.0.2.30/24", ""},
		{"beside a VIP", "4.16", "external", "192.0.2.7 172.22.0.30 192.0.2.30", "172.22.0.30/24 192.0.2.30/24", "would choose 192.0.2.30"},
		{"the operator wrote one", "4.17", "external", "172.22.0.30 192.0.2.30", "172.22.0.30/24 192.0.2.30/24", ""},
		{"the operator wrote one, too", "4.16", "baremetal", "172.22.0.30 192.0.2.30", "172.22.0.30/24 192.0.2.30/24", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := setup{tt.platform, false, "HighlyAvailable", "4.12"}.export(tt.release)
			if tt.platform == "external" { // the site's own keepalived holds the VIPs
				files[0].Data = regexp.MustCompile(`(?m)^        external:\n(          .*\n)+`).ReplaceAll(files[0].Data, nil)
				conf := ""
				for i, vip := range []string{"192.0.2.5", "192.0.2.7"} {
					conf += fmt.Sprintf("vrrp_instance demo_%s {\n state BACKUP\n interface eth0\n virtual_router_id %d\n priority 40\n advert_int 1\n unicast_peer {\n 192.0.2.31\n }\n virtual_ipaddress {\n %s/32\n }\n}\n", []string{"API", "INGRESS"}[i], 51+i, vip)
				}
				files = append(files, render.File{Name: "keepalived.conf", Data: []byte(conf)})
			}
			node := nodeObject("worker-0", strings.Fields(tt.addresses)[0])
			text := strings.Replace(string(node.Data), "metadata:\n", fmt.Sprintf("metadata:\n  annotations: {k8s.ovn.org/host-cidrs: '[\"%s\"]'}\n", strings.ReplaceAll(tt.host, " ", `","`)), 1)
			for _, a := range strings.Fields(tt.addresses)[1:] {
				text += fmt.Sprintf("  - {type: InternalIP, address: %q}\n", a)
			}
			files = append(files, render.File{Name: "node.yaml", Data: []byte(text)})
			notes := slices.DeleteFunc(planned(t, files, adopt.Options{}).Notes, func(n string) bool { return !strings.Contains(n, "would choose") })
			if got := strings.Join(notes, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("noted: %q", got)
			}
		})
	}
}

// Labelled Nodes are imported: on bare metal the agent finds them by the operator's rule.
func TestHardCase09Import(t *testing.T) {
	const label = "node.openshift.io/remote-worker"
	for _, s := range []setup{usual, {"vsphere", false, "HighlyAvailable", "4.12"}} {
		p := planned(t, append(s.export("4.18"), nodeObject("worker-0", "172.22.0.30", label), nodeObject("worker-1", "192.0.2.31")), adopt.Options{})
		carried := slices.ContainsFunc(p.Import.Carried, func(f importer.Fact) bool { return f.What == "remote workers" && f.Value == "worker-0" })
		lost := slices.ContainsFunc(p.Import.Lost, func(l importer.Loss) bool { return strings.Contains(l.What, label) && len(l.Places) == 1 })
		if bare := s == usual; carried != bare || lost == bare {
			t.Errorf("%v: carried over %v, lost %v", s, carried, lost)
		}
	}
}
