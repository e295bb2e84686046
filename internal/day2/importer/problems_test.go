package importer_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func prefixes(list ...string) (out []netip.Prefix) {
	for _, s := range list {
		out = append(out, prefix(s))
	}
	return out
}

// changed returns the files of a case with a text replaced in one of them, or with another
// file.
func changed(t *testing.T, name, file, old, new string) []render.File {
	t.Helper()
	files := sourceFiles(t, name)
	at := slices.IndexFunc(files, func(f render.File) bool { return f.Name == name+"/"+file })
	if at < 0 {
		return append(files, render.File{Name: name + "/" + file, Data: []byte(new)})
	}
	text := string(files[at].Data)
	testkit.Contains(testkit.In(t, file), text, old)
	files[at].Data = []byte(strings.Replace(text, old, new, 1))
	return files
}

func TestProblems(t *testing.T) {
	const conf, config, bgp = "master-0/etc/keepalived/keepalived.conf", "cluster/controllerconfig.yaml", "metallb.yaml"
	for _, tt := range []struct {
		what, name, file, old, new string
		want                       string
	}{
		{"unterminated block", "baremetal", conf, "virtual_server 192.0.2.99 25 {", "virtual_server 192.0.2.99 25 {\nx {", "baremetal/" + conf + ":99:1: error: found unterminated block"},
		{"a brace too many", "baremetal", conf, "}\n\nvrrp_script chk_ocp_both", "}\n}\n\nvrrp_script chk_ocp_both", `:16:1: error: found unexpected "}"`},
		{"a quote that is open", "baremetal", conf, "chk_ocp_script.sh\"", "chk_ocp_script.sh", ":10:1: error: found unterminated quoted string"},
		{"an action that is open", "multicast", "00-master/etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl", "{{ .VRRPInterface }}", "{{ .VRRPInterface ", ": error: found unterminated template action"},
		{"a router ID", "baremetal", conf, "virtual_router_id 97", "virtual_router_id 300", ":51:1: error: virtual_router_id: found something else, expected a number from 1 to 255 [bad-value]"},
		{"an interval", "baremetal", conf, "advert_int 1", "advert_int none", ":53:1: error: advert_int: found something else, expected 0.01 to 255 seconds [bad-timing]"},
		{"a VIP", "baremetal", conf, "192.0.2.5/32", "192.0.2.500/32", ":64:1: error: virtual_ipaddress: found something else, expected an IP address"},
		{"another VIP", "baremetal", conf, "192.0.2.5/32", "192.0.2.8/32", ":64:1: error: the API VIPs: found 192.0.2.8, expected 192.0.2.5, as in baremetal/cluster/controllerconfig.yaml:31"},
		{"another router ID on another node", "baremetal", "worker-0/etc/keepalived/keepalived.conf", "virtual_router_id 51", "virtual_router_id 52", "worker-0/etc/keepalived/keepalived.conf:18:1: error: virtual router ID, ingress: found 52, expected 51, as in"},
		{"multicast on one node", "baremetal", "worker-0/etc/keepalived/keepalived.conf", "    unicast_src_ip 192.0.2.30\n    unicast_peer {\n        192.0.2.20\n        192.0.2.21\n        192.0.2.22\n    }\n", "", "the mode: found multicast, expected unicast"},
		{"a VIP in the wrong spelling", "baremetal", config, "          - 192.0.2.5", "          - 192.0.2.5x", ":32:13: error: spec.infra.status.platformStatus.baremetal.apiServerInternalIPs[0]: found \"192.0.2.5x\", expected an IP address"},
		{"a release before 4.12", "multicast", "objects.yaml", "release:4.12.33", "release:4.11.33", "objects.yaml:8:1: error: openshiftVersion: found 4.11, expected 4.12 or later (update the cluster first"},
		{"another domain", "baremetal", config, "baseDomain: demo.example.com", "baseDomain: other.example.com", "the cluster's domain: found demo.example.com, expected other.example.com"},
		{"another platform", "baremetal", config, "type: BareMetal", "type: AWS", "the platform: found baremetal, expected aws"},
		{"a platform that is no word", "arbiter", "controllerconfig.yaml", "type: BareMetal", "type: \"a\\n\"", "platformStatus.type: found something else, expected a word"},
		{"a cloud", "arbiter", "controllerconfig.yaml", "type: BareMetal", "type: AWS", "error: platform: found \"aws\", expected baremetal"},
		{"an image", "baremetal", config, "keepalivedImage: ", "keepalivedImage: '@' #", "error: keepalived: found something else, expected the reference of a container image [bad-image]"},
		{"a router's AS number", "metallb", bgp, "peerASN: 64601\n", "peerASN: 4294967296\n", "metallb.yaml:10:14: error: spec.peerASN: found \"4294967296\""},
		{"VIPs by BGP without routers", "metallb", "cluster.yaml", "vipManagement: Keepalived", "vipManagement: BGP", "cluster.yaml:13:1: error: platform.baremetal.bgpVIPConfig: found VIPs that OpenShift announces by BGP, and no routers"},
		{"a key twice", "arbiter", "controllerconfig.yaml", "metadata: {name: machine-config-controller}\n", "metadata: {name: machine-config-controller}\nmetadata: {name: b}\n", "controllerconfig.yaml:4:1: error: metadata: found \"metadata\" for the second time"},
		{"YAML", "baremetal", config, "  images:", "  images: [", "error: found"},
		{"a mode file", "dual-stack", "master-0/etc/keepalived/monitor.conf", "unicast", "anycast", "error: mode: found something else, expected unicast or multicast"},
		{"a migration under way", "dual-stack", "master-0/etc/keepalived/monitor.conf", "unicast", "multicast", "the mode: found unicast, expected multicast"},
		{"vipgen's own", "arbiter", "arbiter-0/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml", "", "kind: ClusterConfig\n", "error: found configuration that vipgen has rendered"},
		{"vipgen's own keepalived.conf", "arbiter", "m/keepalived.conf", "", "# Written by vipgen-agent from cluster.yaml\n", "error: found configuration that vipgen has rendered"},
		{"a network that does not hold the VIPs", "arbiter", "controllerconfig.yaml", "203.0.113.0/24", "198.51.100.0/24", "[vip-outside-network]"},
		{"no MachineConfig", "arbiter", "mc.yaml", "", "kind: MachineConfig\nmetadata: {name: a}\nspec: {config: {ignition: {version: 9.0.0}}}\n", "arbiter/mc.yaml:2:1: error: found a config that cannot be decoded"},
	} {
		testkit.Contains(testkit.In(t, tt.what), problemsOf(t, changed(t, tt.name, tt.file, tt.old, tt.new), importer.Given{}).Error(), tt.want)
	}
}

// TestMissing: all missing files are reported at once.
func TestMissing(t *testing.T) {
	one := func(text string) []render.File { return []render.File{{Name: "keepalived.conf", Data: []byte(text)}} }
	for _, tt := range []struct {
		what  string
		files []render.File
		want  []problem.Code
	}{
		{"nothing", nil, []problem.Code{problem.MissingField}},
		{"nothing of a cluster", []render.File{{Name: "a.yaml", Data: []byte("kind: Secret\n")}}, []problem.Code{problem.MissingField}},
		{"an empty keepalived.conf", one(""), []problem.Code{problem.MissingField, problem.NoVIPs}},
		{"one VIP", one("vrrp_instance a_API {\nvirtual_router_id 1\nvirtual_ipaddress {\n192.0.2.5/24\n}\n}\n"), []problem.Code{problem.MissingField, problem.NoVIPs}},
	} {
		list := problemsOf(t, tt.files, importer.Given{})
		for _, want := range tt.want {
			if !slices.ContainsFunc(list, func(p problem.Problem) bool { return p.Code == want && p.Hint+p.Expected != "" }) {
				t.Errorf("%s: no %s in\n%s", tt.what, want, list.Error())
			}
		}
	}
}

// TestAllAtOnce: every broken file is in one report.
func TestAllAtOnce(t *testing.T) {
	files := sourceFiles(t, "baremetal")
	for n := range files {
		switch {
		case strings.HasSuffix(files[n].Name, ".yaml"):
			files[n].Data = append([]byte("kind: Pod\nx: [\n"), files[n].Data...)
		default:
			files[n].Data = append(files[n].Data, "\nx {\n"...)
		}
	}
	list := problemsOf(t, files, importer.Given{})
	for _, f := range files {
		if !slices.ContainsFunc(list, func(p problem.Problem) bool { return p.File == f.Name && p.Line > 0 }) {
			t.Errorf("nothing about %s in\n%s", f.Name, list.Error())
		}
	}
}

// everything returns the complete result of a Read, as text.
func everything(t testing.TB, r *importer.Result, list problem.List) string {
	t.Helper()
	out := list.Error()
	if r != nil {
		report, err := json.Marshal(r)
		testkit.Must(t, err)
		out += string(report) + string(r.InstallConfig) + string(r.VIPConfig)
	}
	return out
}

// TestNoSecrets: no part of a secret of the source is in any output, even if files are
// truncated anywhere, so that other text is in place of numbers.
func TestNoSecrets(t *testing.T) {
	for _, name := range cases {
		files := sourceFiles(t, name)
		r, list := importer.Read(files, importer.Given{})
		testkit.Lacks(testkit.In(t, name), everything(t, r, list), secret)
		for n, f := range files {
			lines := strings.SplitAfter(string(f.Data), "\n")
			for cut := range lines {
				changes := map[string]string{
					"ends":    strings.Join(lines[:cut], ""),
					"lacks":   strings.Join(lines[:cut], "") + strings.Join(lines[cut+1:], ""),
					"garbled": strings.Join(lines[:cut], "") + secretLine(lines[cut]) + strings.Join(lines[cut+1:], ""),
				}
				for what, text := range changes {
					if text == string(f.Data) {
						continue // read above
					}
					damaged := slices.Clone(files)
					damaged[n].Data = []byte(text)
					r, list := importer.Read(damaged, importer.Given{})
					if all := everything(t, r, list); strings.Contains(all, secret) {
						t.Fatalf("%s: %s at line %d: a secret reaches the output:\n%s", f.Name, what, cut+1, all)
					}
					if r == nil && list.Err() == nil {
						t.Fatalf("%s: %s at line %d: no result and no problem", f.Name, what, cut+1)
					}
				}
			}
		}
	}
}

// secretLine replaces the last word of a line by the secret, except for words that are shown on
// purpose: names, images and VIPs.
func secretLine(line string) string {
	for _, shown := range []string{"name", "image", "Image", "IP", "vip", "domain", "Domain", "URI", "type", "Type", "kind", "namespace", "192.", "172.", "10.", "2001:", "198.", "203.", "k8s.ovn.org", "command",
		"opology", "vrrp_", "chk_", "platform", "server", "{", "listen", "frontend", "backend", "ersion", "api", "Domain", "replicas", "timeout", "maxconn", "retries", "ASN", "peerAddress", "holdTime", "keepaliveTime", "MultiHop"} {
		if strings.Contains(line, shown) {
			return line
		}
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	first, _, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok {
		return line
	}
	return fmt.Sprintf("%s%s %s\n", line[:indent], first, secret)
}

// TestConsequences: a value in an unreadable file is not reported as missing.
func TestConsequences(t *testing.T) {
	list := problemsOf(t, []render.File{{Name: "keepalived.conf", Data: []byte("vrrp_instance a_API {\n")}}, importer.Given{})
	if len(list) != 1 || list[0].Code != problem.Syntax {
		t.Errorf("%s", list.Error())
	}
}

// fuzzFile imports any bytes as one file of a case: nothing panics, problems have a position,
// and imported input loads, which Read verifies itself.
func fuzzFile(f *testing.F, name, file string) {
	var rest []render.File
	for _, s := range sourceFiles(f, name) {
		if s.Name == name+"/"+file {
			f.Add(s.Data)
		} else {
			rest = append(rest, s)
		}
	}
	for _, seed := range []string{"", "{", "}", "a {\n", "{{", "{{ \"}}\" }}", "vrrp_instance x_API {\n virtual_ipaddress {\n 1.2.3.4/99\n }\n}", "a\n{\nb \"c\\\" d\"\n}", "${A}${B", "kind: List\nitems: [{kind: List, items: [{kind: Pod}]}]\n", "kind: Node\napiVersion: v1\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, list := importer.Read(append(rest[:len(rest):len(rest)], render.File{Name: name + "/" + file, Data: data}), importer.Given{})
		for _, p := range list {
			if p.Line < 0 || p.Code == "" || strings.ContainsFunc(p.String(), unicode.IsControl) {
				t.Errorf("the problem %q", p)
			}
		}
		switch {
		case r == nil && list.Err() == nil:
			t.Error("no result and no error")
		case r != nil && list.Err() != nil:
			t.Error("a result and an error")
		case r != nil:
			for _, l := range r.Lost {
				if strings.ContainsFunc(l.What+l.Instead, unicode.IsControl) || len(l.Places) == 0 {
					t.Errorf("the loss %+v", l)
				}
			}
			for _, c := range r.Carried {
				if strings.ContainsFunc(c.What+c.Value, unicode.IsControl) {
					t.Errorf("the fact %+v", c)
				}
			}
		}
	})
}

func FuzzKeepalived(f *testing.F) {
	fuzzFile(f, "baremetal", "master-0/etc/keepalived/keepalived.conf")
}
func FuzzTemplate(f *testing.F) {
	fuzzFile(f, "multicast", "00-master/etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl")
}
func FuzzManifest(f *testing.F) {
	fuzzFile(f, "baremetal", "master-0/etc/kubernetes/manifests/keepalived.yaml")
}
func FuzzObjects(f *testing.F)  { fuzzFile(f, "multicast", "objects.yaml") }
func FuzzState(f *testing.F)    { fuzzFile(f, "dual-stack", "nodes.yaml") }
func FuzzMetalLB(f *testing.F)  { fuzzFile(f, "metallb", "metallb.yaml") }
func FuzzModeFile(f *testing.F) { fuzzFile(f, "dual-stack", "master-0/etc/keepalived/monitor.conf") }
