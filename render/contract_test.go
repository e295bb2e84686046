package render

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "write the tables of docs/output.md")

// setup is a kind of cluster that the operator contract distinguishes.
type setup struct {
	name, platform string
	userManaged    bool
	topology       string // "", "single", "fencing" or "arbiter"
}

func setups() (out []setup) {
	for _, p := range []string{"baremetal", "vsphere", "openstack", "ovirt", "nutanix"} {
		out = append(out, setup{p, p, false, ""}, setup{p + " UserManaged", p, true, ""})
	}
	for _, topology := range []string{"single", "fencing", "arbiter"} {
		out = append(out, setup{"baremetal " + topology, "baremetal", false, topology}, setup{"baremetal UserManaged " + topology, "baremetal", true, topology})
	}
	return append(out, setup{"none", "none", false, ""}, setup{"external", "external", false, ""})
}

// since is the first release that has the kind of cluster.
func (s setup) since() string {
	switch {
	case s.topology == "arbiter":
		return "4.19" // with a feature set
	case s.userManaged:
		return "4.13" // refused earlier
	}
	return "4.12"
}

func (s setup) words() []string {
	words := []string{s.platform, s.topology}
	switch {
	case s.platform == "none" || s.platform == "external":
		return append(words, "novips")
	case s.userManaged:
		return append(words, "vips", "user-managed")
	}
	return append(words, "vips", "managed")
}

func (s setup) cluster(t *testing.T, version string) *Cluster {
	t.Helper()
	pools := map[string]string{
		"":        "controlPlane: {name: master, replicas: 3}\ncompute: [{name: worker, replicas: 2}]\n",
		"single":  "controlPlane: {name: master, replicas: 1}\ncompute: [{name: worker, replicas: 0}]\n",
		"fencing": "controlPlane: {name: master, replicas: 2, fencing: {credentials: [{}, {}]}}\nfeatureSet: TechPreviewNoUpgrade\ncompute: [{name: worker, replicas: 0}]\n",
		"arbiter": "featureSet: TechPreviewNoUpgrade\ncontrolPlane: {name: master, replicas: 2}\narbiter: {name: arbiter, replicas: 1}\ncompute: [{name: worker, replicas: 0}]\n",
	}[s.topology]
	platform, spec := s.platform+": {}", "apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7]"
	if s.platform != "none" && s.platform != "external" {
		platform, spec = s.platform+": {apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7]", ""
		if s.platform == "ovirt" {
			platform = "ovirt: {api_vips: [192.0.2.5], ingress_vips: [192.0.2.7]"
		}
		if s.userManaged {
			platform += ", loadBalancer: {type: UserManaged}"
		}
		platform += "}"
	}
	in, list := Read(Sources{
		InstallConfig: File{Name: "install-config.yaml", Data: []byte("apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: demo}\nnetworking: {machineNetwork: [{cidr: 192.0.2.0/24}]}\n" + pools + "platform:\n  " + platform + "\n")},
		VIPConfig:     &File{Name: "vipgen.yaml", Data: []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {" + spec + "}\n")},
	})
	if in == nil {
		t.Fatal(list.Error())
	}
	c, list := resolve(in, Options{OpenShiftVersion: version})
	if c == nil {
		t.Fatal(list.Error())
	}
	return c
}

// rendered caches the bundles of setups, for all tests.
var rendered = map[string][]ignition.Bundle{}

func (s setup) bundles(t *testing.T, version string) []ignition.Bundle {
	t.Helper()
	key := s.name + " " + version
	if rendered[key] == nil {
		bundles, err := s.cluster(t, version).Bundles()
		testkit.Must(t, err)
		rendered[key] = bundles
	}
	return rendered[key]
}

// TestOperatorContract compares the output with the contract, for every kind of cluster and
// release: all files are in the contract, all that must be replaced are, kept ones are not
// touched, and replaced units keep their promises.
func TestOperatorContract(t *testing.T) {
	nodes, rows := 0, map[string]bool{}
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			for _, version := range ignition.SupportedOpenShift() {
				if !assets.AtLeast(version, s.since()) {
					continue
				}
				for _, b := range s.bundles(t, version) {
					if b.Role != "bootstrap" { // the operator never sees that host
						nodes++
						checkContract(t, s, version, b, rows)
					}
				}
			}
		})
	}
	for _, e := range assets.Contract {
		if !rows[row(e)] {
			t.Errorf("%s: a row for no cluster", row(e))
		}
	}
	t.Logf("%d kinds of nodes held against %d rows", nodes, len(assets.Contract))
}

// Where an external load balancer replaces OpenShift's own, exactly the manifests of the
// operator's keepalived and HAProxy are replaced by empty ones; without the operator's, none.
func TestOperatorsBalancer(t *testing.T) {
	for _, s := range setups() {
		for _, version := range append(ignition.SupportedOpenShift(), "") {
			if !assets.AtLeast(version, s.since()) && (version != "" || s.topology == "arbiter") {
				continue
			}
			c := s.cluster(t, version)
			c.Config.Spec.LoadBalancer = v1alpha1.LoadBalancerExternal
			c.Roles = append(c.Roles, "infra")
			bundles, err := c.Bundles()
			testkit.Must(t, err)
			for _, b := range bundles {
				role := b.Role
				if role == "infra" {
					role = v1alpha1.RoleWorker
				}
				var want, got []string
				for _, e := range assets.Contract {
					if balances := strings.HasSuffix(e.Name, "manifests/keepalived.yaml") || strings.HasSuffix(e.Name, "manifests/haproxy.yaml"); balances && e.Treatment == assets.Replaced && e.Applies(s.words(), role, version) {
						want = append(want, e.Name)
					}
				}
				for _, f := range b.Files {
					if !strings.HasSuffix(f.Path, "/keepalived.yaml") && !strings.HasSuffix(f.Path, "/haproxy.yaml") {
						continue
					}
					got = append(got, f.Path)
					var v any
					if err := yaml.Unmarshal(f.Contents, &v); err != nil || v != nil {
						t.Errorf("%s, %s: %s is %v, %v", s.name, version, f.Path, v, err)
					}
				}
				slices.Sort(want)
				testkit.Equal(testkit.In(t, s.name, version, b.Role), want, got)
			}
			if (c.Installable() == nil) == slices.Contains(s.words(), "managed") {
				t.Errorf("%s, %s: %v", s.name, version, c.Installable())
			}
		}
	}
}

// row returns the name of a row of the contract.
func row(e assets.Entry) string { return fmt.Sprint(e.Name, " ", e.Roles, " ", e.From, " ", e.Where) }

func checkContract(t *testing.T, s setup, version string, b ignition.Bundle, seen map[string]bool) {
	t.Helper()
	where := fmt.Sprintf("%s %s, %s", b.Role, version, s.name)
	rendered := map[string]string{}
	for _, f := range b.Files {
		rendered[f.Path] = string(f.Contents)
	}
	for _, u := range b.Units {
		rendered[u.Name] = u.Contents
	}
	known := map[string]assets.Treatment{}
	for _, e := range assets.Contract {
		if !e.Applies(s.words(), b.Role, version) {
			continue
		}
		seen[row(e)] = true
		if other, twice := known[e.Name]; twice {
			t.Errorf("%s: %s is both %s and %s", where, e.Name, other, e.Treatment)
		}
		known[e.Name] = e.Treatment
		text, is := rendered[e.Name]
		switch {
		case e.Treatment == assets.Kept && is:
			t.Errorf("%s: %s is to be kept, and is rendered", where, e.Name)
		case e.Treatment == assets.Replaced && !is:
			t.Errorf("%s: %s is to be replaced, and is not rendered", where, e.Name)
		}
		for _, promise := range e.Promises {
			if missing := broken(text, promise); is && missing != "" {
				t.Errorf("%s: %s promises others %s, not here: %s", where, e.Name, promise, missing)
			}
		}
	}
	for name := range rendered {
		if known[name] == "" {
			t.Errorf("%s: %s is rendered, and not in the contract", where, name)
		}
	}
}

// broken returns the words of a promise, such as "After=a.service b.target", that a unit lacks
// under that key.
func broken(unit, promise string) string {
	key, value, _ := strings.Cut(promise, "=")
	var have []string
	for line := range strings.Lines(unit) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && k == key {
			have = append(have, strings.Fields(v)...)
		}
	}
	missing := slices.DeleteFunc(strings.Fields(value), func(w string) bool { return slices.Contains(have, w) })
	return strings.Join(missing, " ")
}

// TestBootstrapHost: with UserManaged, the installer copies OpenShift's CoreDNS to the
// bootstrap host, pod and template, over the files of the Ignition config. Both of vipgen's
// have these names, so that there is one CoreDNS at any time, and none of its other files has a
// name that the installer's copies replace or join.
func TestBootstrapHost(t *testing.T) {
	for _, s := range setups() {
		bundles := s.bundles(t, "4.20")
		i := slices.IndexFunc(bundles, func(b ignition.Bundle) bool { return b.Role == "bootstrap" })
		testkit.Equal(testkit.In(t, s.name), i < 0, !s.userManaged && slices.Contains(s.words(), "vips"))
		if i < 0 {
			continue
		}
		var dns []string
		for _, f := range bundles[i].Files {
			if strings.Contains(string(f.Contents), "vipgen-agent\n    - coredns\n") || strings.Contains(f.Path, "Corefile") {
				dns = append(dns, f.Path)
			}
		}
		want := []string{"/etc/kubernetes/manifests/coredns.yaml", "/etc/kubernetes/static-pod-resources/coredns/Corefile.tmpl"}
		testkit.Equal(testkit.In(t, s.name), want, dns)
	}
}

// TestOpenShiftPage: docs/output.md has the same tables as the code.
func TestOpenShiftPage(t *testing.T) {
	const file = "../docs/output.md"
	data := testkit.ReadFile(t, file)
	text := string(data)
	for name, table := range map[string]string{"releases": releaseTable(), "contract": contractTable()} {
		begin, end := "<!-- table "+name+" -->\n", "<!-- end "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s has no place for table %s", file, name)
		}
		text = before + begin + table + end + after
	}
	testkit.Kept(t, file, []byte(text), *update)
}

func contractTable() string {
	var b strings.Builder
	words := map[string]string{"vips": "platforms with VIPs", "novips": "`none`, `external`", "user-managed": "`UserManaged`", "managed": "OpenShift's load balancer",
		"single": "one node", "fencing": "two nodes", "arbiter": "two nodes and an arbiter"}
	b.WriteString("| file or unit | nodes | releases | clusters | vipgen | |\n|---|---|---|---|---|---|\n")
	var rows []string              // of vipgen's files, without the name
	names := map[string][]string{} // by row
	kept := map[string][]string{}  // by reason: their paths matter only to developers of vipgen
	add := func(to map[string][]string, row, name string) {
		if !slices.Contains(to[row], name) {
			to[row] = append(to[row], name)
		}
	}
	for _, e := range assets.Contract {
		name := "`" + e.Name + "`"
		if e.Treatment == assets.Kept {
			if e.Why != "" {
				add(kept, e.Why, name)
			}
			continue
		}
		var on []string
		for _, w := range strings.Fields(e.Where) {
			on = append(on, cmp.Or(words[w], "`"+w+"`"))
		}
		roles := strings.ReplaceAll(e.Roles, " ", ", ")
		if len(strings.Fields(e.Roles)) == 3 {
			roles = "all"
		}
		row := fmt.Sprintf("%s | %s | %s | %s | %s", roles, e.Span(), cmp.Or(strings.Join(on, ", "), "all"), e.Treatment, e.Why)
		if !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
		add(names, row, name)
	}
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names[row], ", "), row)
	}
	b.WriteString("\n| kept | |\n|---|---|\n")
	for _, why := range slices.Sorted(maps.Keys(kept)) {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(kept[why], ", "), why)
	}
	return b.String()
}

func releaseTable() string {
	var b strings.Builder
	b.WriteString("| release | Ignition | HAProxy | keepalived | new for VIPs |\n|---|---|---|---|---|\n")
	for _, r := range assets.Releases {
		target, err := ignition.ParseTarget(ignition.OpenShift, r.Version)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Version, ignition.NewEncoder(target).IgnitionVersion(), r.HAProxy, r.Keepalived, r.New)
	}
	return b.String()
}

func TestEveryReleaseIsDescribed(t *testing.T) {
	have := lists.Map(assets.Releases, func(r assets.Release) string { return r.Version })
	testkit.Equal(t, ignition.SupportedOpenShift(), have)
}

// TestRangeOfReleases: texts with vipgen's range of releases do not end with the last but one.
func TestRangeOfReleases(t *testing.T) {
	last := assets.Releases[len(assets.Releases)-2:]
	files := []string{"../README.md", "../CHANGELOG.md", "../api/v1alpha1/vipconfig.go", "../assets/contract.go", "../internal/proof/verify/openshift.go"}
	pages, err := filepath.Glob("../docs/*.md")
	testkit.Must(t, err)
	ranges := regexp.MustCompile(`\b4\.12["\x60]* to ["\x60]*(?:release-)?(\d+\.\d+)`)
	for _, file := range append(files, pages...) {
		for _, m := range ranges.FindAllStringSubmatch(string(testkit.ReadFile(t, file)), -1) {
			if m[1] == last[0].Version {
				t.Errorf("%s has %s: the newest is %s", file, m[0], last[1].Version)
			}
		}
	}
}

// shared are the folders that a pod or unit may write to and that contain files of
// MachineConfigs.
var shared = []string{"/etc", "/etc/keepalived", "/etc/systemd/system"}

// TestHardCase57RunTimeWrites: the files that a node's pods and units write at run time are not
// files of MachineConfigs, the operator's or vipgen's, in every kind of cluster and release.
func TestHardCase57RunTimeWrites(t *testing.T) {
	writable, holds := map[string]bool{}, map[string]bool{}
	for _, s := range setups() {
		for _, version := range ignition.SupportedOpenShift() {
			if !assets.AtLeast(version, s.since()) {
				continue
			}
			for _, b := range s.bundles(t, version) {
				paths, dirs := laid(b), writableBy(t, b)
				for _, dir := range dirs {
					writable[dir] = true
				}
				for _, p := range paths {
					if testkit.WrittenAtRunTime(p) {
						t.Errorf("%s, %s, pool %s: %s is laid down, and written while the node runs", s.name, version, b.Role, p)
					}
					for _, dir := range dirs {
						if strings.HasPrefix(p, dir+"/") || p == dir {
							holds[dir] = true
						}
					}
				}
			}
		}
	}
	for _, e := range assets.Contract {
		if testkit.WrittenAtRunTime(e.Name) {
			t.Errorf("%s is the operator's, and written while the node runs", e.Name)
		}
	}
	testkit.Equal(t, shared, slices.Sorted(maps.Keys(holds)))
	for dir := range writable {
		if !slices.ContainsFunc(testkit.RunTimeWrites(), func(w string) bool { return strings.HasPrefix(w, dir+"/") }) {
			t.Errorf("%s may be written, and nothing is known to be", dir)
		}
	}
	for _, w := range testkit.RunTimeWrites() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(writable)), func(dir string) bool { return strings.HasPrefix(w, dir+"/") }) {
			t.Errorf("%s is written, and nothing may write it", w)
		}
	}
}

// laid returns the paths of a bundle's files and units.
func laid(b ignition.Bundle) (out []string) {
	const units = "/etc/systemd/system/"
	for _, f := range b.Files {
		out = append(out, f.Path)
	}
	for _, u := range b.Units {
		out = append(out, units+u.Name)
		for _, d := range u.Dropins {
			out = append(out, units+u.Name+".d/"+d.Name)
		}
	}
	return out
}

// volume matches a volume that a unit mounts into its container, by the path on the node.
var volume = regexp.MustCompile(`--volume (\S+):/host\S*?(:ro)?(?:\s|$)`)

// writableByPod caches the paths of pods by their text: most releases have the same.
var writableByPod = map[string][]string{}

// writableBy returns the paths on the node's disk that its pods and units may write to.
func writableBy(t *testing.T, b ignition.Bundle) (out []string) {
	t.Helper()
	add := func(p string) {
		if !slices.ContainsFunc([]string{"/run", "/proc"}, func(memory string) bool { return p == memory || strings.HasPrefix(p, memory+"/") }) {
			out = append(out, p)
		}
	}
	for _, f := range b.Files {
		if path.Dir(f.Path) != "/etc/kubernetes/manifests" {
			continue
		}
		if known, ok := writableByPod[string(f.Contents)]; ok {
			out = append(out, known...)
			continue
		}
		before := len(out)
		var pod corev1.Pod
		testkit.Must(t, yaml.UnmarshalStrict(f.Contents, &pod))
		host := map[string]string{}
		for _, v := range pod.Spec.Volumes {
			if v.HostPath != nil {
				host[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for _, m := range c.VolumeMounts {
				if p, there := host[m.Name]; there && !m.ReadOnly {
					add(p)
				}
			}
		}
		writableByPod[string(f.Contents)] = out[before:]
	}
	for _, u := range b.Units {
		found := volume.FindAllStringSubmatch(u.Contents, -1)
		if len(found) != strings.Count(u.Contents, "--volume") {
			t.Fatalf("%s: %d volumes are read of\n%s", u.Name, len(found), u.Contents)
		}
		for _, v := range found {
			if v[2] == "" {
				add(v[1])
			}
		}
	}
	return out
}
