package importer_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

// machineConfig returns an object like `oc get -o json`, with files by their paths on the node:
// some as data URLs, some in base64, some compressed.
func machineConfig(t testing.TB, name, role string, files map[string][]byte) map[string]any {
	t.Helper()
	var paths []string
	for p := range files {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	var list []any
	for n, p := range paths {
		contents := map[string]any{}
		switch n % 3 {
		case 0:
			contents["source"] = "data:," + url.PathEscape(string(files[p]))
		case 1:
			contents["source"] = "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(files[p])
		case 2:
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, err := w.Write(files[p])
			testkit.Must(t, err)
			testkit.Must(t, w.Close())
			contents["compression"], contents["source"] = "gzip", "data:;base64,"+base64.StdEncoding.EncodeToString(b.Bytes())
		}
		list = append(list, map[string]any{"path": p, "mode": 420, "overwrite": true, "contents": contents})
	}
	meta := map[string]any{"name": name}
	if role != "" {
		meta["labels"] = map[string]any{"machineconfiguration.openshift.io/role": role}
	}
	return map[string]any{"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": meta,
		"spec": map[string]any{"config": map[string]any{
			"ignition": map[string]any{"version": "3.2.0"},
			"passwd":   map[string]any{"users": []any{map[string]any{"name": "core", "sshAuthorizedKeys": []any{secret}}}},
			"storage":  map[string]any{"files": list}}}}
}

func jsonList(t testing.TB, items ...any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	testkit.Must(t, err)
	return data
}

// nodeFiles returns the files of a node of a case, by their paths there.
func nodeFiles(t testing.TB, files []render.File, node string) (inside map[string][]byte, rest []render.File) {
	t.Helper()
	inside = map[string][]byte{}
	for _, f := range files {
		if _, p, ok := strings.Cut(f.Name, "/"+node+"/"); ok {
			inside["/"+p] = f.Data
		} else {
			rest = append(rest, f)
		}
	}
	if len(inside) == 0 {
		t.Fatal("no files of ", node)
	}
	return inside, rest
}

// TestMachineConfigs: the same files in exported MachineConfigs give the same input, in every
// form that the operator creates, and if an older config, or an older rendered one, differs.
func TestMachineConfigs(t *testing.T) {
	for _, tt := range []struct{ name, node string }{{"baremetal", "master-0"}, {"multicast", "00-master"}, {"arbiter", "arbiter-0"}} {
		want := importCase(t, tt.name)
		inside, rest := nodeFiles(t, sourceFiles(t, tt.name), tt.node)
		stale := map[string][]byte{"/etc/keepalived/keepalived.conf": []byte("vrrp_instance old_API {\n")}
		current := "rendered-master-00000000000000000000000000000001"
		pool := map[string]any{"kind": "MachineConfigPool", "metadata": map[string]any{"name": "master"}, "status": map[string]any{"configuration": map[string]any{"name": current}}}
		sources := map[string][]byte{
			"plain":           jsonList(t, machineConfig(t, "00-master", "master", inside), machineConfig(t, "99-master-ssh", "master", nil)),
			"made by it":      jsonList(t, machineConfig(t, current, "", inside)),
			"last name wins":  jsonList(t, machineConfig(t, "98-fixed", "master", inside), machineConfig(t, "00-master", "master", without(stale, inside))),
			"older ones made": jsonList(t, pool, machineConfig(t, "rendered-master-0000000000000000000000000000ffff", "", stale), machineConfig(t, current, "", inside), machineConfig(t, "00-master", "master", stale)),
		}
		for what, data := range sources {
			t.Run(tt.name+" "+what, func(t *testing.T) {
				got := read(t, append(slices.Clone(rest), render.File{Name: "live.json", Data: data}), importer.Given{})
				testkit.Equal(t, string(want.InstallConfig)+string(want.VIPConfig), string(got.InstallConfig)+string(got.VIPConfig))
				var text []string
				for _, l := range got.Lost {
					text = append(text, l.What)
				}
				for _, l := range want.Lost {
					testkit.Equal(testkit.In(t, "listed:", l.What), true, slices.Contains(text, l.What))
				}
			})
		}
	}
}

// without returns the files that others lacks.
func without(files, others map[string][]byte) map[string][]byte {
	out := map[string][]byte{}
	for p, data := range files {
		if _, there := others[p]; there {
			out[p] = data
		}
	}
	return out
}

// TestPlaceInMachineConfig: the line of a problem counts in the decoded file, and the name
// identifies the file.
func TestPlaceInMachineConfig(t *testing.T) {
	inside, rest := nodeFiles(t, sourceFiles(t, "baremetal"), "master-0")
	got := read(t, append(rest, render.File{Name: "live.json", Data: jsonList(t, machineConfig(t, "00-master", "master", inside))}), importer.Given{})
	want := importer.Place{File: "live.json#00-master:/etc/keepalived/keepalived.conf", Line: 88}
	if !slices.ContainsFunc(got.Lost, func(l importer.Loss) bool {
		return strings.Contains(l.What, "its own password") && slices.Contains(l.Places, want)
	}) {
		t.Errorf("no loss at %+v in %+v", want, got.Lost)
	}
}

// TestOrderOfFiles: the order of the files does not matter.
func TestOrderOfFiles(t *testing.T) {
	for _, name := range cases {
		files := sourceFiles(t, name)
		slices.Reverse(files)
		got := read(t, files, importer.Given{})
		testkit.Equal(testkit.In(t, name), importCase(t, name), got)
	}
}

// TestGiven: flags fill in missing values and override others.
func TestGiven(t *testing.T) {
	var files []render.File
	for _, f := range sourceFiles(t, "baremetal") {
		if filepath.Base(f.Name) == "keepalived.conf" {
			files = append(files, f)
		}
	}
	given := importer.Given{ClusterName: "demo", BaseDomain: "example.org", Mode: "unicast"}
	given.MachineNetworks = append(given.MachineNetworks, prefix("192.0.2.0/25"))
	r := read(t, files, given)
	testkit.Contains(t, string(r.InstallConfig), "baseDomain: example.org\n", "- cidr: 192.0.2.0/25\n", "platform:\n  none: {}\n")
	c := load(t, r)
	if got := c.Config.Spec.Groups[0]; got.VirtualRouterID != 97 || got.VIPs[0].String() != "192.0.2.5" {
		t.Errorf("%+v", got)
	}
}

// TestExternal: VIPs on another host stay there.
func TestExternal(t *testing.T) {
	data := testkit.ReadFile(t, "testdata/external.yaml")
	for dns, records := range map[string]bool{"": false, "      dnsRecordsType: Internal\n": false, "      dnsRecordsType: External\n": true} {
		r := read(t, []render.File{{Name: "i.yaml", Data: append(bytes.Clone(data), dns...)}}, importer.Given{MachineNetworks: prefixes("192.0.2.0/24")})
		if c := load(t, r); c.Config.Spec.LoadBalancer != "External" || len(c.Config.Spec.Groups) != 2 || c.Config.Spec.DNS.External != records {
			t.Errorf("%s%+v", dns, c.Config.Spec)
		}
	}
}

// TestInstalled: a running cluster may have what OpenShift's installer refuses in a new one.
func TestInstalled(t *testing.T) {
	const object = `apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
status:
  apiServerInternalURI: https://api-int.demo.example.com:6443
  platformStatus:
    type: BareMetal
    baremetal:
      apiServerInternalIPs: [192.0.2.5]
      ingressIPs: [192.0.2.6]
`
	const network = `---
apiVersion: config.openshift.io/v1
kind: Network
metadata: {name: cluster}
status:
  networkType: OVNKubernetes
  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}, {cidr: 'fd01::/48', hostPrefix: 64}]
  serviceNetwork: [172.30.0.0/16, 'fd02::/112']
`
	for _, tt := range []struct {
		what, text string
		given      importer.Given
		installed  bool // declared false
	}{
		{"as new ones have it", object, importer.Given{}, false},
		{"a period", object, importer.Given{BaseDomain: "com"}, true},
		{"a period behind a load balancer", object + "      loadBalancer: {type: UserManaged}\n", importer.Given{BaseDomain: "com"}, true},
		{"IPv6 added to pods and services", object + network, importer.Given{}, true},
		{"nodes in a network of OVN-Kubernetes", strings.ReplaceAll(object, "192.0.2", "100.88.2"), importer.Given{MachineNetworks: prefixes("100.88.2.0/24")}, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.given.Mode = "unicast"
			if tt.given.MachineNetworks == nil {
				tt.given.MachineNetworks = prefixes("192.0.2.0/24")
			}
			r := read(t, []render.File{{Name: "objects.yaml", Data: []byte(tt.text)}}, tt.given)
			load(t, r)
			testkit.Equal(testkit.In(t, string(r.InstallConfig), string(r.VIPConfig)), tt.installed, strings.Contains(string(r.VIPConfig), "interoperable: false"))
		})
	}
}

// TestFencing: two nodes with fencing render without its credentials.
func TestFencing(t *testing.T) {
	files := sourceFiles(t, "baremetal")
	for n := range files {
		files[n].Data = bytes.Replace(files[n].Data, []byte("controlPlaneTopology: HighlyAvailable\n"), []byte("controlPlaneTopology: DualReplica\n"), 1)
	}
	r := read(t, files, importer.Given{})
	if c := load(t, r); c.Config.Spec.Topology != "DualReplica" || !strings.Contains(string(r.InstallConfig), "\n  fencing:\n    credentials:\n    - {}\n    - {}\n") {
		t.Errorf("%s\n%s", c.Config.Spec.Topology, r.InstallConfig)
	}
}

// TestTiming: settings other than classic become custom, or fast, from the first packet on.
func TestTiming(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"advert_int 1\n", "advert_int 2\n", "advertInterval: 2s\n    interoperable: false\n    profile: custom\n    version: 2\n"},
		{"advert_int 1\n", "version 3\nadvert_int 0.5\n", "advertInterval: 500ms\n    interoperable: false\n    profile: custom\n    version: 3\n"},
		{"advert_int 1\n", "version 3\nadvert_int 0.04\n", "interoperable: false\n    profile: fast\n"},
		{"advert_int 1\n", "", "vrrp:\n    profile: classic\n"},
		{"virtual_router_id 217", "virtual_router_id 77", "interoperable: false\n    profile: classic\n    virtualRouterIDs:\n      api: 77\n"},
	} {
		r := read(t, changed(t, "arbiter", "arbiter-0/etc/keepalived/keepalived.conf", tt.old, tt.new), importer.Given{})
		testkit.Contains(testkit.In(t, tt.new), string(r.VIPConfig), tt.want)
		testkit.Equal(testkit.In(t, tt.new), nil, load(t, r).Config.Spec.VRRP.Start)
	}
}

// TestSeparatedNodes: differences that keep nodes from receiving each other's advertisements are marked.
func TestSeparatedNodes(t *testing.T) {
	const file = "master-0/etc/keepalived/keepalived.conf"
	for _, tt := range []struct{ old, new, want string }{
		{"auth_pass demo_api_vip", "auth_pass other", "API VIP: its own password"},
		{"auth_type PASS", "auth_type AH", "API VIP: authentication of another type than PASS"},
		{"    authentication {\n        auth_type PASS\n        auth_pass demo_api_vip\n    }\n", "", "API VIP: no authentication"},
		{"192.0.2.5/32\n", "192.0.2.5/32\n192.0.2.17/32\n", "the API VIPs: 192.0.2.17 besides, which the cluster does not know"},
		{"advert_int 1\n    unicast_src_ip 192.0.2.20\n    unicast_peer {\n        192.0.2.21\n        192.0.2.22\n        192.0.2.30", "advert_int 3\n    unicast_src_ip 192.0.2.20\n    unicast_peer {\n        192.0.2.21\n        192.0.2.22\n        192.0.2.30", "VRRPv2 with an advertisement every 3s"},
	} {
		r := read(t, changed(t, "baremetal", file, tt.old, tt.new), importer.Given{})
		if !slices.ContainsFunc(r.Lost, func(l importer.Loss) bool { return l.Apart && l.What == tt.want }) {
			t.Errorf("no %q in %+v", tt.want, r.Lost)
		}
	}
}

// TestName: nodes know the first label of a name with several, unless a flag overrides it.
func TestName(t *testing.T) {
	installed := func(name, base string) render.File {
		return render.File{Name: "installed.yaml", Data: []byte("kind: ConfigMap\nmetadata: {name: cluster-config-v1}\ndata:\n  install-config: |\n    apiVersion: v1\n    metadata: {name: " + name + "}\n    baseDomain: " + base + "\n    platform: {vsphere: {apiVIPs: [198.51.100.5], ingressVIPs: [198.51.100.7]}}\n")}
	}
	node := func(name string) render.File {
		return render.File{Name: "keepalived.conf", Data: []byte("vrrp_instance " + name + "_API {\nvirtual_router_id 9\nunicast_src_ip 198.51.100.20\nvirtual_ipaddress {\n198.51.100.5\n}\n}\n")}
	}
	for _, tt := range []struct {
		what  string
		more  []render.File
		given importer.Given
		want  string
		says  string
	}{
		{"nothing else", nil, importer.Given{}, "name: vs\n", "the first label"},
		{"installed with two labels", []render.File{installed("vs.prod", "example.com")}, importer.Given{}, "name: vs\n", "The cluster was installed as vs.prod"},
		{"installed with one", []render.File{installed("vs", "prod.example.com")}, importer.Given{}, "name: vs\n", ""},
		{"a node has two", []render.File{installed("vs.prod", "example.com"), node("vs.prod")}, importer.Given{}, "name: vs.prod\n", ""},
		{"a node has one", []render.File{installed("vs.prod", "example.com"), node("vs")}, importer.Given{}, "name: vs\n", ""},
		{"the command line has two", nil, importer.Given{ClusterName: "vs.prod"}, "name: vs.prod\n", ""},
		{"the command line has the base domain", nil, importer.Given{BaseDomain: "example.com"}, "name: vs.prod\n", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r := read(t, append(sourceFiles(t, "vsphere"), tt.more...), tt.given)
			if !strings.Contains(string(r.InstallConfig), tt.want) || r.Domain != "vs.prod.example.com" {
				t.Errorf("no %q in\n%s", tt.want, r.InstallConfig)
			}
			said := ""
			for _, a := range r.Assumed {
				if a.What == "cluster name" {
					said = a.Why
				}
			}
			if (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
				t.Errorf("assumed: %q", said)
			}
		})
	}
}

func TestRelevant(t *testing.T) {
	for name, want := range map[string]bool{
		"master-0/etc/keepalived/keepalived.conf":                                                  true,
		"etc/kubernetes/static-pod-resources/coredns/Corefile.tmpl":                                false,
		"mg/q/cluster-scoped-resources/machineconfiguration.openshift.io/controllerconfigs/m.yaml": true,
		"mg/q/cluster-scoped-resources/config.openshift.io/infrastructures/cluster.yaml":           true,
		"mg/q/cluster-scoped-resources/core/nodes/master-0.yaml":                                   true,
		"mg/q/cluster-scoped-resources/core/persistentvolumes/a.yaml":                              false,
		"mg/q/namespaces/openshift-kni-infra/pods/keepalived-a/keepalived-a.yaml":                  true,
		"mg/q/namespaces/openshift-kni-infra/pods/keepalived-a/keepalived/logs/current.log":        false,
		"mg/q/namespaces/kube-system/core/configmaps.yaml":                                         true,
		"mg/q/namespaces/openshift-config/core/configmaps.yaml":                                    false,
		"mg/q/namespaces/metallb-system/metallb.io/bgppeers/rack-a.yaml":                           true,
		"mg/q/namespaces/metallb-system/core/secrets.yaml":                                         false,
		"etc/kubernetes/kubeconfig":                                                                false,
		"home/core/.ssh/id_rsa":                                                                    false,
	} {
		testkit.Equal(testkit.In(t, name), want, importer.Relevant(name))
	}
}

// The cluster's Ingress object names the additional domains of routes.
func TestRoutes(t *testing.T) {
	object := func(version, domain, apps string) render.File {
		return render.File{Name: "ingress.yaml", Data: fmt.Appendf(nil, "apiVersion: %s\nkind: Ingress\nmetadata: {name: cluster}\nspec: {domain: %q, appsDomain: %q}\n", version, domain, apps)}
	}
	const config = "config.openshift.io/v1"
	usual := "apps." + importCase(t, "baremetal").Domain
	for name, tt := range map[string]struct {
		file    render.File
		domains []string // of the default ingress controller
		problem string
	}{
		"the usual one":         {object(config, usual, ""), []string{usual}, ""},
		"another one":           {object(config, "routes.example.net", ""), []string{usual, "routes.example.net"}, ""},
		"for routes of no host": {object(config, usual, "shop.example.net"), []string{usual, "shop.example.net"}, ""},
		"both":                  {object(config, "routes.example.net", "shop.example.net"), []string{usual, "routes.example.net", "shop.example.net"}, ""},
		"an object of users":    {object("networking.k8s.io/v1", "routes.example.net", "shop.example.net"), []string{usual}, ""},
		"no domain":             {object(config, usual, "*.example.net"), nil, `ingress.yaml:4:1: error: spec.appsDomain: found "*.example.net", expected a domain such as apps.example.net`},
	} {
		r, list := importer.Read(append(sourceFiles(t, "baremetal"), tt.file), importer.Given{})
		if r == nil {
			if tt.problem == "" || !strings.Contains(list.Error(), tt.problem) {
				t.Errorf("%s: %s", name, list.Error())
			}
			continue
		}
		for _, g := range load(t, r).Config.Spec.Groups {
			if g.Name == "ingress" && !slices.Equal(g.Domains, tt.domains) {
				t.Errorf("%s: domains %v, want %v", name, g.Domains, tt.domains)
			}
		}
	}
}

// TestMetalLB: routers without BFD, Nodes or BGPPeers that vipgen can have, and the comment with
// the others, which is valid.
func TestMetalLB(t *testing.T) {
	const bgp = "metallb.yaml"
	for _, tt := range []struct{ what, file, old, new, want, lost string }{
		{"no BFD", bgp, "    bfdProfile: fast\n    holdTime: 1m", "    holdTime: 1m", "#         enabled: false\n#       holdTime: 1m30s\n", ""},
		{"the AS of the nodes", bgp, "peerASN: 64605, interface: ens3", "localASN: 64999, dynamicASN: internal, peerAddress: 192.0.2.4", "#     - address: 192.0.2.4\n#       asn: 64512\n", ""},
		{"another AS in sessions", bgp, "    myASN: 64513\n", "    myASN: 64513\n    localASN: 65001\n", "#       localASN: 65001\n", ""},
		{"a keepalive time", bgp, "    holdTime: 9s\n", "", "#       holdTime: 3s\n", ""},
		{"no Nodes", "cluster.yaml", "kind: Node,", "kind: Other,", "#       multihop: 255\n#       passwordFile", "nodeSelectors, as the source has no Nodes"},
		{"no MetalLB", bgp, "metallb.io/", "example.com/", "vrrp:\n    profile: classic\n", ""},
	} {
		files := changed(t, "metallb", tt.file, tt.old, tt.new)
		for n := range files {
			if tt.file != bgp || tt.what == "no MetalLB" {
				files[n].Data = bytes.ReplaceAll(files[n].Data, []byte(tt.old), []byte(tt.new)) // all of them
			}
		}
		r := read(t, files, importer.Given{})
		testkit.Contains(testkit.In(t, tt.what), string(r.VIPConfig), tt.want)
		if tt.lost != "" && !slices.ContainsFunc(r.Lost, func(l importer.Loss) bool { return l.What == tt.lost }) {
			t.Errorf("%s: no %q in %+v", tt.what, tt.lost, r.Lost)
		}
		if tt.what == "no MetalLB" {
			testkit.Lacks(t, string(r.VIPConfig), "bgp")
		}
	}
	r := importCase(t, "metallb")
	load(t, r)
	head, routers, _ := strings.Cut(string(r.VIPConfig), "# MetalLB's routers.")
	lines := strings.SplitAfter(routers, "\n")[2:] // without the sentences
	text := head + strings.ReplaceAll("# "+strings.TrimPrefix(strings.Join(lines, ""), "# "), "#   ", "  ") +
		"  additionalAPIVIPs: [{name: new, vips: [198.51.100.5], announce: bgp}]\n"
	c := clusters.Load(t, string(r.InstallConfig), text)
	testkit.Equal(t, 4, len(c.Config.Spec.BGP.Peers))
}

// TestPreview: a cluster that was installed with bgpVIPConfig has its VIPs by BGP, with the same
// routers, unless it runs keepalived.
func TestPreview(t *testing.T) {
	objects := string(testkit.ReadFile(t, "testdata/preview.yaml"))
	file := func(text string) []render.File { return []render.File{{Name: "objects.yaml", Data: []byte(text)}} }
	router := "---\napiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: a}\nspec: {myASN: 1, peerASN: 2, peerAddress: 192.0.2.9}\n"
	r := read(t, file(objects+router), importer.Given{})
	testkit.Contains(t, string(r.VIPConfig), "  announce: bgp\n", "      passwordFile: /etc/vipgen/bgp/192.0.2.1\n", "        interval: 300ms\n", "    - 64512:100\n", "      multihop: 255\n")
	testkit.Lacks(t, everything(t, r, nil), secret)
	c := load(t, r)
	testkit.Equal(t, 2, len(c.Config.Spec.BGP.Peers))
	for _, what := range []string{"OpenShift's kube-vip and FRR, which announce the VIPs now", "the password of BGP sessions, which is not read", "BFD over several hops", "MetalLB's routers"} {
		if !slices.ContainsFunc(r.Lost, func(l importer.Loss) bool { return l.What == what && l.Places[0].Line > 0 }) {
			t.Errorf("no %q in %+v", what, r.Lost)
		}
	}
	for name, tt := range map[string]struct {
		config string
		want   []string
		errors string
	}{
		"routers now": {`{"localASN":64513,"defaultPeers":[{"peerAddress":"192.0.2.3","peerASN":64602,"password":"hunter2","bfdEnabled":"true","holdTime":"90","keepaliveTime":"30"}],"communities":["64512:200"],"apiVIPs":["198.51.100.5"],"ingressVIPs":["198.51.100.6"]}`,
			[]string{"  announce: bgp\n", "localASN: 64513\n", "192.0.2.3\n", "holdTime: 1m30s\n", "interval: 300ms\n", "/etc/vipgen/bgp/192.0.2.3\n", "64512:200\n"}, ""},
		"of a host": {`{"localASN":64513,"defaultPeers":[{"peerAddress":"192.0.2.3","peerASN":64602}],"hostOverrides":{"a":[{"peerAddress":"192.0.2.4","peerASN":64602,"holdTime":"9s"}]}}`,
			[]string{"192.0.2.3\n", "- b\n", "192.0.2.4\n", "- a.example.com\n", "holdTime: 9s\n"}, ""},
		"of an unknown host": {`{"localASN":64513,"hostOverrides":{"c":[{"peerAddress":"192.0.2.4","peerASN":64602}]}}`, nil, `routers of "c", and no such node`},
		"bad values":         {`{"defaultPeers":[{"peerAddress":"192.0.2.3","peerASN":64602,"bfdEnabled":"yes","holdTime":"soon","bfd":true}]}`, nil, "#bgp-vip-config:config.json"},
	} {
		t.Run(name, func(t *testing.T) {
			with := objects + "---\napiVersion: v1\nkind: Node\nmetadata: {name: a.example.com}\n---\napiVersion: v1\nkind: Node\nmetadata: {name: b}\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bgp-vip-config, namespace: openshift-network-operator}\ndata:\n  config.json: '" + tt.config + "'\n"
			if tt.errors != "" {
				testkit.Contains(t, problemsOf(t, file(with), importer.Given{}).Error(), tt.errors)
				return
			}
			r := read(t, file(with), importer.Given{})
			testkit.Contains(t, string(r.VIPConfig), tt.want...)
			testkit.Lacks(t, string(r.VIPConfig), "192.0.2.1\n")
			testkit.Lacks(t, everything(t, r, nil), secret)
		})
	}
	pod := "---\napiVersion: v1\nkind: Pod\nmetadata: {name: keepalived-a, namespace: openshift-kni-infra}\nspec: {containers: [{env: [{name: ENABLE_UNICAST, value: 'yes'}]}]}\n"
	r = read(t, file(strings.ReplaceAll(objects, "198.51.100.", "192.0.2.10")+pod), importer.Given{})
	testkit.Lacks(t, string(r.VIPConfig), "announce")
	list := problemsOf(t, file(strings.Replace(objects, "failureDetection: BFD, h", "bfd: true, h", 1)), importer.Given{})
	testkit.Contains(t, list.Error(), "error: platform.baremetal.bgpVIPConfig.peers[0]: found an unknown field, expected a field that OpenShift's installer has")
	list = problemsOf(t, file(strings.Replace(objects, "peerASN: 64601, p", "p", 1)), importer.Given{})
	testkit.Contains(t, list.Error(), "objects.yaml#cluster-config-v1:install-config:13:9: error: platform.baremetal.bgpVIPConfig.peers[0].peerASN: found nothing")
}
