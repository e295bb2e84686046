package adopt_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/ignition/diff"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

var update = flag.Bool("update", false, "write the export; then read it")

// planned reads an export without problems.
func planned(t *testing.T, files []render.File, o adopt.Options) *adopt.Plan {
	t.Helper()
	p, list := adopt.Read(files, o)
	if list.Err() != nil || p == nil {
		t.Fatalf("%v", list)
	}
	return p
}

func unknownNames(p *adopt.Plan) (out []string) {
	for _, u := range p.Unknown {
		out = append(out, u.Name)
	}
	return out
}

func everyRelease(t *testing.T, all bool) {
	added := []config{
		{files: map[string]string{"/etc/kubernetes/manifests/kube-vip.yaml": "x"}},
		{files: map[string]string{"/etc/kubernetes/static-pod-resources/frr/startup.sh": "x"}},
		{files: map[string]string{"/usr/local/bin/vip-resign.sh": "systemctl stop keepalived\n"}},
		{files: map[string]string{"/etc/NetworkManager/conf.d/90-new.conf": "[main]\nrc-manager=file\n"}},
		{units: map[string]string{"before-address.service": "[Unit]\nBefore=nodeip-configuration.service\n"}},
		{units: map[string]string{"nodeip-configuration.service": "[Unit]\n"}, dropins: map[string]string{"nodeip-configuration.service": "[Service]\nEnvironment=A=b\n"}},
	}
	exports := 0
	for _, s := range setups() {
		for n, release := range ignition.SupportedOpenShift() {
			// The short tier has every release, and each kind of cluster once.
			if !assets.AtLeast(release, s.since) || !all && s != usual && release != "4.20" {
				continue
			}
			exports++
			t.Run(s.String()+" "+release, func(t *testing.T) { checkExport(t, s, release, n, added[n%len(added)]) })
		}
	}
	t.Logf("%d exports", exports)
}

// TestEveryRelease derives exports of every release from the operator contract, and of every
// kind of cluster: all items are known. A single addition, wherever it is, is refused by its
// name, and accepted by its name.
func TestEveryRelease(t *testing.T) { everyRelease(t, false) }

// TestEveryReleaseOfEverySetup does the same for every kind of cluster with every release.
func TestEveryReleaseOfEverySetup(t *testing.T) {
	testkit.Long(t)
	everyRelease(t, true)
}

// checkExport adds an item to one of the pools of an export; n varies the pool.
func checkExport(t *testing.T, s setup, release string, n int, more config) {
	more.name, more.pool, more.operators = "01-"+s.pools()[n%2], s.pools()[n%2], true
	if more.pool == "arbiter" {
		more.name, more.pool = "01-master", "master"
	}
	name := slices.Concat(sorted(more.files), sorted(more.units))[0]
	if more.dropins != nil {
		name += ".d/10-extra.conf"
	}
	files := s.export(release, more)
	p, list := adopt.Read(files, adopt.Options{})
	errs := list.Errors()
	if p == nil || len(errs) != 1 || errs[0].Code != problem.UnknownOperatorFile || !strings.HasSuffix(errs[0].Field, " "+name) || !strings.Contains(errs[0].Found, more.name) {
		t.Fatalf("%s added to %s: %v", name, more.name, list)
	}
	if diff := cmp.Diff([]string{name}, unknownNames(p)); diff != "" || p.Release != release || len(p.Items) < 15 {
		t.Errorf("release %s, %d items\n%s", p.Release, len(p.Items), diff)
	}
	if s != usual || release != "4.20" {
		return
	}
	if p := planned(t, files, adopt.Options{Accept: []string{name}}); len(p.Accepted) != 1 || len(p.Unknown) != 0 {
		t.Errorf("accepted: %v, unknown: %v", p.Accepted, p.Unknown)
	}
	if p := planned(t, s.export(release), adopt.Options{}); len(p.Accepted)+len(p.Unknown) != 0 || p.Others != 3 {
		t.Errorf("nothing added: %v, %d others", p.Unknown, p.Others)
	}
}

// A file of another release is unknown, and so is one that the operator never had and vipgen
// adds.
func TestOtherRelease(t *testing.T) {
	for _, tt := range []struct{ release, name, why string }{
		{"4.18", "/etc/sudoers.d/hacluster-keepalived", "does not know"},
		{"4.13", "/usr/local/bin/wait-for-br-ex-up.sh", "has for from 4.14 vips (master worker arbiter), not for these nodes of OpenShift 4.13"},
		{"4.18", "/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml", "vipgen has rendered"},
		{"4.18", "/etc/kubernetes/manifests/mdns-publisher.yaml", "vipgen has one of that name"},
	} {
		_, list := adopt.Read(usual.export(tt.release, config{name: "01-x", pool: "master", operators: true, files: map[string]string{tt.name: "kind: Pod # keepalived\n"}}), adopt.Options{})
		// Items without relation to VIPs by path and text are ignored.
		want := tt.why
		testkit.Contains(testkit.In(t, tt.name, tt.release), list.Error(), want)
	}
}

func effects(p *adopt.Plan, pool string) (out []string) {
	for _, r := range p.Rollouts {
		for _, c := range r.Pools {
			if c.Pool == pool {
				out = append(out, c.With.String()+"/"+c.Without.String())
			}
		}
	}
	return out
}

// TestReboots counts reboots: one to adopt; the migration needs none with the node disruption
// policy, and one without it, or three by vipgen migrate.
func TestReboots(t *testing.T) {
	const migration = "reload by the agent/reboot"
	want := []string{"reboot/reboot", migration, "files only/reboot", migration, "files only/reboot"}
	p := planned(t, usual.export("4.18"), adopt.Options{})
	for _, pool := range []string{"master", "worker"} {
		got := effects(p, pool)
		if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || !strings.HasSuffix(got[2], "/reboot") || !strings.HasSuffix(got[4], "/reboot") {
			t.Errorf("%s: %q", pool, got)
		}
		for byMode, counts := range map[bool][2]int{false: {1, 2}, true: {1, 4}} {
			if with, without := p.Reboots(pool, byMode); [2]int{with, without} != counts {
				t.Errorf("%s, by mode file %t: %d and %d reboots, want %v", pool, byMode, with, without, counts)
			}
		}
	}
	// 4.16 has no policies; a cluster with its own policy counts as one without.
	mine := render.File{Name: "policy.yaml", Data: []byte("apiVersion: operator.openshift.io/v1\nkind: MachineConfiguration\nmetadata: {name: cluster}\nspec: {nodeDisruptionPolicy: {files: [{path: /etc/a, actions: [{type: None}]}]}}\n")}
	for _, files := range [][]render.File{usual.export("4.16"), append(usual.export("4.18"), mine)} {
		p := planned(t, files, adopt.Options{})
		with, without := p.Reboots("worker", true)
		if with != 4 || without != 4 || strings.Contains(string(p.Import.VIPConfig), "nodeDisruptionPolicy") {
			t.Errorf("%d and %d reboots\n%s", with, without, p.Import.VIPConfig)
		}
	}
	// Nodes without VIPs have nothing to migrate.
	user := setup{"vsphere", true, "HighlyAvailable", "4.13"}
	testkit.Equal(t, 1, len(planned(t, user.export("4.18"), adopt.Options{}).Rollouts))
}

// MachineConfigs of others with files of vipgen.
func TestCollisions(t *testing.T) {
	before := config{name: "50-site", pool: "worker", files: map[string]string{"/etc/keepalived/monitor.conf": "mode: unicast\n"}}
	after := config{name: "99-worker-zz-site", pool: "worker", files: map[string]string{"/etc/kubernetes/static-pod-resources/coredns/Corefile.tmpl": ". {\n}\n"}}
	p := planned(t, usual.export("4.18", before), adopt.Options{})
	if len(p.Replaced) != 1 || p.Replaced[0].Other != "50-site" || p.Replaced[0].Owner != diff.Users || len(p.Shadowed) != 0 {
		t.Errorf("%+v", p.Replaced)
	}
	p, list := adopt.Read(usual.export("4.18", after), adopt.Options{})
	if errs := list.Errors(); p == nil || len(errs) != 1 || errs[0].Code != problem.Shadowed || !strings.Contains(errs[0].Found, "99-worker-zz-site") {
		t.Errorf("%v", list)
	}
	planned(t, usual.export("4.18", after), adopt.Options{Accept: []string{"99-worker-zz-site"}})
}

// Whether nodes can pull the images; of the pull secret only names of registries are shown.
func TestImages(t *testing.T) {
	secret := config{name: "01-master-secret", pool: "master", operators: true, files: map[string]string{"/var/lib/kubelet/config.json": `{"auths": {"registry.example.com": {"auth": "hunter2"}}}`}}
	mirrors := render.File{Name: "mirrors.yaml", Data: []byte(`apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata: {name: a}
spec: {imageDigestMirrors: [{source: registry.example.com, mirrors: [mirror.example.net/a]}]}
---
apiVersion: config.openshift.io/v1
kind: ImageTagMirrorSet
metadata: {name: b}
spec: {imageTagMirrors: [{source: quay.io/vipgen, mirrors: [mirror.example.net/b]}]}
`)}
	p := planned(t, append(usual.export("4.18", secret), mirrors), adopt.Options{})
	for i, want := range []adopt.Image{
		{Name: "agent", Secret: "no", Mirror: "mirror.example.net/b"},
		{Name: "keepalived", Running: true, Secret: "yes", Mirror: "none: the mirrors of its source work by digest only, and it is named by tag"},
	} {
		got := p.Images[i]
		got.Image = ""
		testkit.Equal(t, want, got)
	}
	if p := planned(t, usual.export("4.18"), adopt.Options{}); p.Images[0].Secret != "unknown" || p.Images[0].Mirror != "" {
		t.Errorf("%+v", p.Images[0])
	}
	files, err := p.Files()
	testkit.Must(t, err)
	for _, f := range files {
		testkit.Lacks(testkit.In(t, f.Path), string(f.Data), "hunter2")
	}
}

// All missing objects of the export are reported at once.
func TestIncomplete(t *testing.T) {
	text := string(usual.export("4.18")[0].Data)
	text = strings.Replace(text, "kind: ClusterVersion", "kind: Other", 1)
	text = strings.ReplaceAll(text, "name: 00-worker", "name: rendered-worker-0123456789abcdef")
	_, list := adopt.Read([]render.File{{Name: "live.yaml", Data: []byte(text)}}, adopt.Options{})
	testkit.Contains(t, list.Error(), "no release of OpenShift", "no MachineConfig of the operator for the pool worker")
	if p, list := adopt.Read(usual.export("4.11"), adopt.Options{}); p != nil || !strings.Contains(list.Error(), string(problem.UnsupportedVersion)) {
		t.Errorf("4.11: %v", list)
	}
}

// written returns the files of a written directory, in the form of Since.
func written(t *testing.T, files []render.File, o adopt.Options) (out []render.File) {
	t.Helper()
	list, err := planned(t, files, o).Files()
	testkit.Must(t, err)
	for _, f := range list {
		if adopt.Wanted(f.Path) {
			out = append(out, render.File{Name: f.Path, Data: f.Data})
		}
	}
	return out
}

func since(t *testing.T, dir, later []render.File, to string) *adopt.Check {
	t.Helper()
	c, list := adopt.Since(dir, later, to)
	if c == nil {
		t.Fatal(list.Error())
	}
	return c
}

// TestCheck: nothing changed; a file changed; one was added, and an accepted one changed;
// another release.
func TestCheck(t *testing.T) {
	extra := func(text string) config {
		return config{name: "01-x", pool: "worker", operators: true, files: map[string]string{"/etc/keepalived/x": text}}
	}
	dir := written(t, usual.export("4.18", extra("1")), adopt.Options{Accept: []string{"/etc/keepalived/x"}})
	testkit.Equal(t, 0, since(t, dir, usual.export("4.18", extra("1")), "").Findings())
	changed := usual.operator("master", "4.18")
	changed.files["/etc/kubernetes/static-pod-resources/keepalived/keepalived.conf.tmpl"] = "global_defs {\n    vrrp_version 3\n}\n"
	changed.name = "01-later"
	added := config{name: "01-y", pool: "master", operators: true, files: map[string]string{"/etc/kubernetes/manifests/new.yaml": "x"}}
	c := since(t, dir, usual.export("4.18", extra("2"), changed, added), "")
	if len(c.Changes) != 1 || !strings.HasSuffix(c.Changes[0].Name, "/keepalived.conf.tmpl") || c.Changes[0].From != "pool master" || len(c.Changes[0].Fields) != 1 {
		t.Errorf("%+v", c.Changes)
	}
	if out, list := adopt.Update(dir, usual.export("4.18", extra("2"), added), []string{"/etc/keepalived/x"}); out != nil || len(list.Errors()) != 1 || !strings.Contains(list.Error(), "new.yaml") {
		t.Errorf("updated with an unknown file: %v", list)
	}
	if len(c.Unknown) != 2 || c.Unknown[0].Name != "/etc/kubernetes/manifests/new.yaml" || c.Unknown[1].Why != "was accepted with other contents" {
		t.Errorf("%+v", c.Unknown)
	}
	// vipgen's own MachineConfigs are part of later exports.
	own := since(t, dir, append(usual.export("4.18", extra("1")), dir[slices.IndexFunc(dir, func(f render.File) bool { return strings.HasPrefix(f.Name, "rendered/") })]), "")
	testkit.Equal(t, 0, own.Findings())
	// An update: other images, removed files.
	c = since(t, dir, usual.export("4.19", extra("1")), "")
	if c.Is != "4.19" || len(c.Images) != 3 || !slices.ContainsFunc(c.Changes, func(x diff.Change) bool {
		return x.What == "removed" && strings.HasSuffix(x.Name, "/30-static-dhcp")
	}) {
		t.Errorf("%+v", c)
	}
}

// TestNext: the changes of a release are known before the update.
func TestNext(t *testing.T) {
	dir := written(t, usual.export("4.18"), adopt.Options{})
	n := since(t, dir, usual.export("4.18"), "4.23").Next
	want := []adopt.RowChange{
		{Name: "/etc/NetworkManager/dispatcher.d/30-static-dhcp", Pool: "master", Was: assets.Kept},
		{Name: "/usr/local/bin/wait-for-node-ip.sh", Pool: "master", Is: assets.Kept, Why: "run by wait-for-node-ip.service"},
		{Name: "wait-for-primary-ip.service", Pool: "worker", Was: assets.Kept},
	}
	for _, w := range want {
		if !slices.Contains(n.Rows, w) {
			t.Errorf("no %+v in %+v", w, n.Rows)
		}
	}
	if len(n.News) != 4 || !strings.HasPrefix(n.News[0], "4.20: ") || n.Daemons != "HAProxy 2.8, keepalived 2.2.8" {
		t.Errorf("%q, %s", n.News, n.Daemons)
	}
	for _, p := range n.Pools {
		testkit.Equal(testkit.In(t, p), diff.Nothing, p.Effect)
	}
	testkit.Equal(t, 0, since(t, dir, usual.export("4.18"), "4.18").Findings())
	for name, files := range map[string][]render.File{"no record": dir[:0], "no operator": dir} {
		later := usual.export("4.18")
		if name == "no operator" {
			later = later[:0]
		}
		if c, list := adopt.Since(files, later, ""); c != nil || list.Err() == nil {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// The canary pool gets copies of the worker's files in a MachineConfig that sorts after the
// worker's.
func TestCanary(t *testing.T) {
	files, err := planned(t, usual.export("4.18"), adopt.Options{Canary: "first", CanaryNodes: []string{"worker-0"}}).Files()
	testkit.Must(t, err)
	text := func(name string) string {
		i := slices.IndexFunc(files, func(f render.OutputFile) bool { return f.Path == name })
		if i < 0 {
			t.Fatalf("no %s", name)
		}
		return string(files[i].Data)
	}
	worker, canary := text("rendered/machineconfigs/99-worker-vipgen.yaml"), text("canary/99-worker-vipgen.first.yaml")
	testkit.Equal(t, worker, strings.NewReplacer("99-worker-vipgen.first", "99-worker-vipgen", "role: first", "role: worker").Replace(canary))
	if !strings.Contains(text("canary/machineconfigpool.yaml"), "node-role.kubernetes.io/first: \"\"") || !strings.Contains(text(adopt.StepsName), "oc label node worker-0 node-role.kubernetes.io/first=\n") {
		t.Errorf("%s", text(adopt.StepsName))
	}
}

// TestExport maintains the export in examples/export, which other tests and pages read.
func TestExport(t *testing.T) {
	const file = "../../../examples/export/before.yaml"
	got := usual.export("4.18", config{name: "50-site", pool: "worker", files: map[string]string{"/etc/keepalived/monitor.conf": "mode: unicast\n"}})[0].Data
	testkit.Kept(t, file, got, *update)
}

// Text of the cluster is text in the steps.
func TestStepsAreInert(t *testing.T) {
	hostile := strings.Replace(config{name: "50-x", pool: "POOL", files: map[string]string{"/etc/a": "x"}}.String(), "POOL", `"a|b`+"`c`<script>"+`\n# oc delete node --all"`, 1)
	files := append(usual.export("4.18"), render.File{Name: "hostile.yaml", Data: []byte(hostile)},
		render.File{Name: "mirrors.yaml", Data: []byte("apiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: a}\nspec: {imageTagMirrors: [{source: quay.io/vipgen, mirrors: [\"m|x\\n## y\"]}]}\n")})
	steps := planned(t, files, adopt.Options{}).Steps()
	testkit.Contains(t, steps, "| roll-out | master | worker | a_b_c__script__# oc delete node --all |\n", "| m_x_## y |\n")
}
