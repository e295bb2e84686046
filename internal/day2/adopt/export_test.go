package adopt_test

import (
	_ "embed"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// setup is a kind of cluster with VIPs.
type setup struct {
	platform    string
	userManaged bool
	topology    string // as in the Infrastructure object
	// since is the first release with this kind of cluster that vipgen renders for.
	since string
}

func (s setup) String() string {
	return strings.Join([]string{s.platform, s.topology, map[bool]string{true: "UserManaged", false: "managed"}[s.userManaged]}, " ")
}

var (
	words = map[string]string{"SingleReplica": "single", "DualReplica": "fencing", "HighlyAvailableArbiter": "arbiter"}
	usual = setup{"baremetal", false, "HighlyAvailable", "4.12"}
)

func setups() []setup {
	var out []setup
	for _, p := range []string{"baremetal", "vsphere", "openstack", "ovirt", "nutanix"} {
		out = append(out, setup{p, false, "HighlyAvailable", "4.12"}, setup{p, true, "HighlyAvailable", "4.13"})
	}
	return append(out, setup{"baremetal", false, "SingleReplica", "4.12"}, setup{"baremetal", false, "DualReplica", "4.20"}, setup{"baremetal", false, "HighlyAvailableArbiter", "4.20"})
}

func (s setup) words() []string {
	if s.platform == "external" {
		return []string{s.platform, words[s.topology], "novips"}
	}
	load := "managed"
	if s.userManaged {
		load = "user-managed"
	}
	return []string{s.platform, words[s.topology], "vips", load}
}

// short returns the platform as in names of namespaces.
func (s setup) short() string {
	if s.platform == "baremetal" {
		return "kni"
	}
	return s.platform
}

func (s setup) pools() []string {
	if s.topology == "HighlyAvailableArbiter" {
		return []string{"master", "arbiter", "worker"}
	}
	return []string{"master", "worker"}
}

// manifest is the part of OpenShift's keepalived pod that an import reads.
const manifest = `kind: Pod
apiVersion: v1
metadata: {name: keepalived, namespace: openshift-%[2]s-infra}
spec:
  containers:
  - name: keepalived
    image: registry.example.com/keepalived:%[1]s
  - name: keepalived-monitor
    image: registry.example.com/runtimecfg:%[1]s
    env: [{name: ENABLE_UNICAST, value: "yes"}]
`

// config is a MachineConfig with files and units.
type config struct {
	name, pool string
	operators  bool
	files      map[string]string
	units      map[string]string
	dropins    map[string]string // of units, one each
}

func (c config) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: %s\n  labels: {machineconfiguration.openshift.io/role: %s}\n", c.name, c.pool)
	if c.operators {
		b.WriteString("  annotations: {machineconfiguration.openshift.io/generated-by-controller-version: 00000000000000000000000000000000000000aa}\n")
	}
	b.WriteString("spec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:" + empty(c.files) + "\n")
	for _, name := range sorted(c.files) {
		fmt.Fprintf(&b, "      - {path: %s, mode: 420, overwrite: true, contents: {source: \"data:,%s\"}}\n", name, strings.ReplaceAll(url.QueryEscape(c.files[name]), "+", "%20"))
	}
	b.WriteString("    systemd:\n      units:" + empty(c.units) + "\n")
	for _, name := range sorted(c.units) {
		fmt.Fprintf(&b, "      - name: %s\n        enabled: true\n        contents: %q\n", name, c.units[name])
		if text := c.dropins[name]; text != "" {
			fmt.Fprintf(&b, "        dropins: [{name: 10-extra.conf, contents: %q}]\n", text)
		}
	}
	return b.String()
}

// empty returns the text for a list without entries.
func empty(m map[string]string) string {
	if len(m) == 0 {
		return " []"
	}
	return ""
}

func sorted(m map[string]string) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// operator is the MachineConfig 00-POOL according to the contract, with files of the operator
// that are unrelated to VIPs.
func (s setup) operator(pool, release string) config {
	c := config{name: "00-" + pool, pool: pool, operators: true,
		files: map[string]string{"/etc/kubernetes/kubelet.conf": "kind: KubeletConfiguration\n", "/etc/sysctl.d/inotify.conf": "fs.inotify.max_user_watches = 65536\n"},
		units: map[string]string{"kubens.service": "[Unit]\nDescription=Mount namespace\n"}}
	for _, e := range assets.Contract {
		if e.Treatment == assets.Supplied || !e.Applies(s.words(), pool, release) {
			continue
		}
		switch {
		case !strings.HasPrefix(e.Name, "/"):
			c.units[e.Name] = "[Unit]\nDescription=" + e.Name + " of the operator\n"
		case strings.HasSuffix(e.Name, "manifests/keepalived.yaml"):
			c.files[e.Name] = fmt.Sprintf(manifest, release, s.short())
		case strings.HasSuffix(e.Name, "manifests/haproxy.yaml"), strings.HasSuffix(e.Name, "manifests/coredns.yaml"):
			name := strings.TrimSuffix(e.Name[strings.LastIndex(e.Name, "/")+1:], ".yaml")
			c.files[e.Name] = fmt.Sprintf("kind: Pod\napiVersion: v1\nmetadata: {name: %[1]s, namespace: openshift-%[3]s-infra}\nspec:\n  containers:\n  - {name: %[1]s, image: \"registry.example.com/%[1]s:%[2]s\"}\n", name, release, s.short())
		case strings.HasSuffix(e.Name, "haproxy.cfg.tmpl"):
			c.files[e.Name] = "frontend main\n  bind :::{{ .LBConfig.LbPort }} v4v6\n"
		case strings.HasSuffix(e.Name, "Corefile.tmpl"):
			c.files[e.Name] = ". {\n    health :18080\n}\n"
		case strings.HasSuffix(e.Name, "keepalived.conf.tmpl"):
			c.files[e.Name] = "global_defs {\n    script_user root\n}\n"
		case strings.HasSuffix(e.Name, "monitor.conf"):
			c.files[e.Name] = "mode: unicast\n"
		default:
			c.files[e.Name] = "# " + e.Name + " of the operator\n"
		}
	}
	return c
}

// exportHead is the part of an export that describes the cluster.
//
//go:embed testdata/export.fmt
var exportHead string

// export returns the output of 'oc get ... -o yaml' for such a cluster, with additional
// MachineConfigs.
func (s setup) export(release string, more ...config) []render.File {
	types := map[string]string{"baremetal": "BareMetal", "vsphere": "VSphere", "openstack": "OpenStack", "ovirt": "oVirt", "nutanix": "Nutanix", "external": "External"}
	lb := "OpenShiftManagedDefault"
	if s.userManaged {
		lb = "UserManaged"
	}
	var b strings.Builder
	fmt.Fprintf(&b, exportHead, release, s.topology, types[s.platform], s.platform, lb)
	for _, pool := range s.pools() {
		fmt.Fprintf(&b, "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: %s}\nstatus: {machineCount: %d}\n", pool, map[string]int{"master": 3, "worker": 2, "arbiter": 1}[pool])
		b.WriteString(s.operator(pool, release).String())
	}
	for _, c := range more {
		b.WriteString(c.String())
	}
	return []render.File{{Name: "live.yaml", Data: []byte(b.String())}}
}

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
