package diff

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

const policyObject = `{"apiVersion": "operator.openshift.io/v1", "kind": "MachineConfiguration", "metadata": {"name": "cluster"},
"spec": {"nodeDisruptionPolicy": {
  "files": [
    {"path": "/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml", "actions": [{"type": "None"}]},
    {"path": "/etc/chrony.conf", "actions": [{"type": "Restart", "restart": {"serviceName": "chronyd.service"}}]},
    {"path": "/etc/app", "actions": [{"type": "Drain"}, {"type": "Reload", "reload": {"serviceName": "app.service"}}]},
    {"path": "/etc/app/quiet", "actions": [{"type": "None"}]},
    {"path": "/var/lib/kubelet/config.json", "actions": [{"type": "Reboot"}]}],
  "units": [{"name": "app.service", "actions": [{"type": "DaemonReload"}, {"type": "Restart", "restart": {"serviceName": "app.service"}}]}]}}}`

// TestEffects checks the rules of docs/upgrade.md.
func TestEffects(t *testing.T) {
	none, given := clusterDefaults("4.18"), parsePolicy([]byte(policyObject), "4.18")
	file := func(name string) Change { return Change{Kind: kindFile, Name: name} }
	unit := func(name string) Change { return Change{Kind: kindUnit, Name: name} }
	setting := func(name string) Change { return Change{Kind: kindSetting, Name: name} }
	for _, tt := range []struct {
		change Change
		// without a user's policy, and with one.
		none, given Effect
	}{
		{file(v1alpha1.ClusterConfigPath), Reboot, AgentReload},
		{file("/etc/kubernetes/manifests/keepalived.yaml"), Reboot, Reboot},
		{file("/etc/chrony.conf"), Reboot, Services},
		{file("/etc/app/main.conf"), Reboot, Drain},
		{file("/etc/app/quiet/x"), Reboot, Files},
		{file("/etc/application"), Reboot, Reboot},
		{file("/var/lib/kubelet/config.json"), Files, Reboot},
		{file("/etc/nmstate/openshift/a.yml"), Files, Files},
		{file("/etc/containers/policy.json"), Services, Services},
		{file("/etc/containers/registries.d/x.yaml"), Services, Services},
		{file("/etc/machine-config-daemon/no-reboot/containers-gpg.pub"), Services, Services},
		{file("/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt"), Services, Services},
		{file("/etc/containers/registries.conf"), Drain, Drain},
		{unit("app.service"), Reboot, Services},
		{unit("other.service"), Reboot, Reboot},
		{setting(ignition.SettingUsers), Files, Files},
		{setting(ignition.SettingKernelArguments), Reboot, Reboot},
		{setting(ignition.SettingExtensions), Reboot, Reboot},
		{setting(ignition.SettingKernelType), Reboot, Reboot},
		{setting(ignition.SettingOSImage), Reboot, Reboot},
		{setting(ignition.SettingMasks), Reboot, Reboot},
		{setting(settingVersion), Nothing, Nothing},
		{setting(ignition.SettingFIPS), Refused, Refused},
		{setting("storage.disks"), Refused, Refused},
		{setting("passwd.groups"), Refused, Refused},
	} {
		for _, p := range []struct {
			name string
			policy
			want Effect
		}{{"none", none, tt.none}, {"given", given, tt.given}} {
			got, reasons := p.outcome([]Change{tt.change})
			if got != p.want || len(reasons) != 1 || reasons[0].Why == "" {
				t.Errorf("%s %s, policy %s: %s %v, want %s", tt.change.Kind, tt.change.Name, p.name, got, reasons, p.want)
			}
		}
	}
	// The worst of several counts, and is the one that has reasons.
	got, reasons := given.outcome([]Change{file(v1alpha1.ClusterConfigPath), file("/etc/chrony.conf"), file("/etc/app/a")})
	if got != Drain || len(reasons) != 1 || !strings.Contains(reasons[0].Why, "by the node disruption policy") {
		t.Errorf("several: %s %v", got, reasons)
	}
	if got, reasons := given.outcome(nil); got != Nothing || reasons != nil {
		t.Errorf("no change: %s %v", got, reasons)
	}
}

// The policy that the operator reports as in force overrides the one in the spec.
func TestPolicyInForce(t *testing.T) {
	object := strings.TrimSuffix(policyObject, "}") + `, "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": {"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]}}}}`
	if !json.Valid([]byte(object)) {
		t.Fatal("not JSON")
	}
	p := parsePolicy([]byte(object), "")
	for name, want := range map[string]bool{"/etc/a": true, "/etc/chrony.conf": true, "/etc/containers/policy.json": false} {
		_, ok := p.file(name)
		testkit.Equal(testkit.In(t, name), want, ok)
	}
}

func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyObject), "/etc/app/main.conf")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		p := parsePolicy(object, "")
		if e, _ := p.outcome([]Change{{Kind: kindFile, Name: name}}); e < Files || e > Reboot {
			t.Errorf("%s: %s", name, e)
		}
	})
}

// machineConfig returns a MachineConfig with files; a name that starts with "+" appends.
func machineConfig(name, role, notes string, files ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: %s\n  labels: {machineconfiguration.openshift.io/role: %s}\n", name, role)
	if notes != "" {
		fmt.Fprintf(&b, "  annotations: {%s: x}\n", notes)
	}
	b.WriteString("spec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n")
	for _, f := range files {
		path, text, _ := strings.Cut(f, "=")
		if rest, ok := strings.CutPrefix(path, "+"); ok {
			fmt.Fprintf(&b, "      - {path: %s, append: [{source: \"data:,%s\"}]}\n", rest, text)
			continue
		}
		fmt.Fprintf(&b, "      - {path: %s, contents: {source: \"data:,%s\"}}\n", path, text)
	}
	return b.String()
}

func clusterOf(t *testing.T, texts ...string) *Cluster {
	t.Helper()
	c := &Cluster{}
	testkit.Must(t, c.Add("all.yaml", []byte(strings.Join(texts, ""))))
	return c
}

func TestMerge(t *testing.T) {
	c := clusterOf(t,
		machineConfig("99-worker", "worker", "", "/etc/a=worker", "+/etc/log=two"),
		machineConfig("00-worker", "worker", "", "/etc/a=base", "/etc/b=base", "/etc/log=one"),
		machineConfig("99-worker-zz", "infra", "", "/etc/a=infra"),
		machineConfig("00-master", "master", "", "/etc/a=master"),
	)
	for pool, want := range map[string]map[string]string{
		"worker": {"/etc/a": "worker", "/etc/b": "base", "/etc/log": "onetwo"},
		"infra":  {"/etc/a": "infra", "/etc/b": "base", "/etc/log": "onetwo"},
		"master": {"/etc/a": "master"},
	} {
		got := merge(inPool(c.configs, pool, nameOrder))
		testkit.Equal(testkit.In(t, pool), len(want), len(got.files))
		for path, text := range want {
			testkit.Equal(testkit.In(t, pool, path), text, string(got.files[path].Contents))
		}
	}
	testkit.Equal(t, "master worker infra", strings.Join(pools(c.configs), " "))
}

// If a policy is part of the change itself, both outcomes are printed.
func TestNewPolicy(t *testing.T) {
	a := clusterOf(t, machineConfig("99-master-vipgen", "master", clusterAnnotation, v1alpha1.ClusterConfigPath+"=a"))
	b := clusterOf(t, machineConfig("99-master-vipgen", "master", clusterAnnotation, v1alpha1.ClusterConfigPath+"=b"), "---\n", policyObject)
	p := Compare(a, b).Pools[0]
	if p.Effect != AgentReload || p.Without == nil || *p.Without != Reboot {
		t.Errorf("%+v", p)
	}
	testkit.Equal(t, AgentReload, Compare(b, a).Pools[0].Effect)
}

// What an export has besides vipgen's does not differ from a rendered tree, whichever is first.
func TestExport(t *testing.T) {
	own := machineConfig("99-master-vipgen", "master", clusterAnnotation, v1alpha1.ClusterConfigPath+"=a")
	export, tree := clusterOf(t, own, machineConfig("00-master", "master", "", "/etc/a=a")), clusterOf(t, own)
	for _, r := range []Result{Compare(export, tree), Compare(tree, export)} {
		testkit.Empty(t, r.Pools)
	}
	unit := nodeState{units: map[string]nodeUnit{"a.service": {Unit: ignition.Unit{Contents: "[Unit]"}}}}
	testkit.Equal(t, 1, len(sharedItems(unit, unit)))
}

var update = flag.Bool("update", false, "write the table of docs/upgrade.md")

// rendered returns the rendered objects of a release's operator.
func rendered(version string) string {
	return "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: rendered-worker-" + strings.ReplaceAll(version, ".", "-") +
		"\n  annotations: {" + releaseAnnotation + ": " + version + "}\nspec: {}\n"
}

func TestRelease(t *testing.T) {
	for _, tt := range []struct {
		versions []string
		want     string
	}{
		{nil, ""},
		{[]string{"4.14.33"}, "4.14"},
		{[]string{"4.14.33", "4.16.0-rc.1", "4.15.2"}, "4.16"},
		{[]string{"5.0.1", "4.22.7"}, "5.0"},
		{[]string{"3.11.0", "was-not-built-properly", "9.9.9"}, ""},
	} {
		c := clusterOf(t, append(lists.Map(tt.versions, rendered), machineConfig("00-worker", "worker", generatedBy, "/etc/a=a"))...)
		testkit.Equal(testkit.In(t, tt.versions), tt.want, c.Release)
	}
}

// TestHardCase50CustomPool: a MachineConfig of a custom pool, whatever its name, is merged
// after the worker's from 4.15 on, and by name before.
func TestHardCase50CustomPool(t *testing.T) {
	const file = "/etc/keepalived/monitor.conf"
	vipgens := machineConfig("99-worker-vipgen", "worker", clusterAnnotation, file+"=vipgen")
	for _, tt := range []struct {
		release, name string
		// wins: the pool's file is on its nodes; shadowed: diff refuses.
		wins, shadowed bool
	}{
		{"4.12", "50-infra-site", false, false}, {"4.14", "50-infra-site", false, false},
		{"4.14", "99-zz-site", true, true}, {"4.15", "50-infra-site", true, true},
		{"4.18", "50-infra-site", true, true}, {"5.2", "50-infra-site", true, true}, {"", "50-infra-site", true, true},
		{"", "99-zz-site", true, true},
	} {
		live := clusterOf(t, vipgens, machineConfig(tt.name, "infra", "", file+"=site"))
		live.Release = tt.release
		state := merge(inPool(live.configs, "infra", orders(tt.release)[0]))
		testkit.Equal(testkit.In(t, tt.release, tt.name), tt.wins, string(state.files[file].Contents) == "site")
		r := Compare(live, live)
		if got := len(r.Shadowed) == 1 && r.Shadowed[0].Pool == "infra" && r.Shadowed[0].Other == tt.name; got != tt.shadowed || len(r.Shadowed)+len(r.Replaces) != 1 {
			t.Errorf("release %q, %s: shadowed %+v, replaced %+v", tt.release, tt.name, r.Shadowed, r.Replaces)
		}
		// vipgen's own MachineConfig for the pool is last in both orders.
		live = clusterOf(t, vipgens, machineConfig("50-infra-site", "infra", "", file+"=site"), machineConfig("99-worker-vipgen-infra", "infra", clusterAnnotation, file+"=own"))
		live.Release = tt.release
		if r := Compare(live, live); len(r.Shadowed) > 0 || len(r.Replaces) != 1 || r.Replaces[0].Vipgen != "99-worker-vipgen-infra" {
			t.Errorf("release %q, with vipgen's own: shadowed %+v, replaced %+v", tt.release, r.Shadowed, r.Replaces)
		}
	}
	// Where the orders differ and the release is unknown, a MachineConfig of the worker that
	// only its name puts last counts as last.
	late := clusterOf(t, machineConfig("99-worker-zz", "worker", "", file+"=site"), machineConfig("99-worker-vipgen-infra", "infra", clusterAnnotation, file+"=own"))
	for release, want := range map[string]int{"4.14": 1, "4.15": 0, "": 1} {
		late.Release = release
		testkit.Equal(testkit.In(t, release), want, len(Compare(late, late).Shadowed))
	}
}

// TestHardCase56Encoding: the machine config daemon reboots a node for the same file in
// another encoding.
func TestHardCase56Encoding(t *testing.T) {
	config := func(fields string) string {
		return "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: 50-a\n  labels: {machineconfiguration.openshift.io/role: master}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n" + fields
	}
	file := func(fields string) string {
		return config("    storage: {files: [{path: /etc/a, " + fields + "}]}\n")
	}
	unit := func(fields string) string {
		return config("    systemd: {units: [{name: a.service, " + fields + "}]}\n")
	}
	const plain = `mode: 420, contents: {source: "data:,one", compression: ""}`
	for _, tt := range []struct {
		name, before, after, release string
		want                         Effect
		field                        string
	}{
		{"the same", file(plain), file(plain), "4.18", Nothing, ""},
		{"base64", file(plain), file(`mode: 420, contents: {source: "data:;base64,b25l", compression: ""}`), "4.18", Reboot, "contents.source"},
		{"base64", file(plain), file(`mode: 420, contents: {source: "data:;base64,b25l", compression: ""}`), "5.2", Reboot, "contents.source"},
		{"no mode", file(plain), file(`contents: {source: "data:,one", compression: ""}`), "4.18", Reboot, "mode"},
		{"no mode", file(plain), file(`contents: {source: "data:,one", compression: ""}`), "5.2", Reboot, "mode"},
		{"no compression", file(plain), file(`mode: 420, contents: {source: "data:,one"}`), "4.18", Reboot, "contents.compression"},
		{"no compression", file(plain), file(`mode: 420, contents: {source: "data:,one"}`), "4.20", Nothing, ""},
		{"no compression", file(plain), file(`mode: 420, contents: {source: "data:,one"}`), "", Reboot, "contents.compression"},
		{"null compression", file(plain), file(`mode: 420, contents: {source: "data:,one", compression: null}`), "5.2", Nothing, ""},
		{"overwrite", file(plain), file(plain + ", overwrite: true"), "4.18", Nothing, ""},
		{"no overwrite", file(plain), file(plain + ", overwrite: false"), "4.18", Reboot, "overwrite"},
		{"owner", file(plain), file(plain + ", user: {name: root}"), "4.18", Reboot, "user.name"},
		{"no headers", file(plain), file(plain + ", user: {}, append: []"), "4.18", Nothing, ""},
		{"other keys first", file(plain), file(`contents: {compression: "", source: "data:,one"}, mode: 420`), "4.18", Nothing, ""},
		{"mask", unit(`contents: "[Unit]"`), unit(`contents: "[Unit]", mask: false`), "4.18", Reboot, "mask"},
		{"masked", unit(`contents: "[Unit]"`), unit(`contents: "[Unit]", mask: true`), "4.18", Reboot, "systemd.units.mask"},
		{"no contents", unit(`enabled: true`), unit(`enabled: true, contents: ""`), "4.18", Reboot, "contents"},
		{"the same unit", unit(`dropins: [{name: a.conf, contents: "[Unit]"}]`), unit(`dropins: [{contents: "[Unit]", name: a.conf}]`), "4.18", Nothing, ""},
	} {
		a, b := clusterOf(t, tt.before), clusterOf(t, tt.after)
		b.Release = tt.release
		pools := Compare(a, b).Pools
		if tt.want == Nothing {
			testkit.Empty(testkit.In(t, tt.name, tt.release), pools)
			continue
		}
		if len(pools) != 1 || len(pools[0].Changes) != 1 || pools[0].Effect != tt.want || len(pools[0].Changes[0].Fields) != 1 || pools[0].Changes[0].Fields[0].Path != tt.field {
			t.Errorf("%s, release %q: %+v", tt.name, tt.release, pools)
			continue
		}
		if c := pools[0].Changes[0]; c.Kind != kindSetting && (c.What != rewritten || !strings.HasPrefix(pools[0].Reasons[0].Why, rewritten)) {
			t.Errorf("%s, release %q: %+v", tt.name, tt.release, pools)
		}
		testkit.Lacks(testkit.In(t, tt.name), fmt.Sprint(pools), "data:")
	}
	// A file whose change needs no reboot, by the agent or a policy, is written, and no other.
	live := func(source string) *Cluster {
		return clusterOf(t, config("    storage: {files: [{path: "+v1alpha1.ClusterConfigPath+", contents: {source: \""+source+"\"}}]}\n"), "---\n", policyObject)
	}
	if p := Compare(live("data:,one"), live("data:;base64,b25l")).Pools; len(p) != 1 || p[0].Effect != Files {
		t.Errorf("with a policy: %+v", p)
	}
	// Units in another order, as a renamed MachineConfig may have them.
	units := func(first, second string) *Cluster {
		list := ""
		for name, unit := range map[string]string{first: "a.service", second: "b.service"} {
			list += strings.Replace(config("    systemd: {units: [{name: "+unit+", enabled: true}]}\n"), "50-a", name, 1)
		}
		return clusterOf(t, list)
	}
	for release, want := range map[string]int{"4.12": 1, "4.16": 1, "4.17": 0, "5.2": 0, "": 0} {
		a, b := units("50-a", "60-b"), units("70-a", "60-b")
		b.Release = release
		if p := Compare(a, b).Pools; len(p) != want || want == 1 && (p[0].Effect != Reboot || p[0].Changes[0].Name != settingOrder) {
			t.Errorf("units in another order, release %q: %+v", release, p)
		}
	}
	// A MachineConfig without a mode keeps that of an earlier one.
	modes := clusterOf(t, file(`mode: 384, contents: {source: "data:,one"}`), strings.Replace(file(`contents: {source: "data:,two"}`), "50-a", "60-b", 1))
	if f := merge(inPool(modes.configs, "master", nameOrder)).files["/etc/a"]; f.Mode != 0o600 || string(f.Contents) != "two" {
		t.Errorf("merged: %04o %s", f.Mode, f.Contents)
	}
}

// TestHardCase56OperatorRules compares the actions of each release's operator without a policy.
func TestHardCase56OperatorRules(t *testing.T) {
	for _, tt := range []struct {
		name string
		// from each of these releases on; "" is not known.
		effects map[string]Effect
	}{
		{"/etc/crio/policies/openshift.json", map[string]Effect{"4.12": Reboot, "4.17": Reboot, "4.18": Services, "5.2": Services, "": Reboot}},
		{"/etc/kubernetes/credential-providers/ecr.yaml", map[string]Effect{"4.12": Reboot, "4.21": Reboot, "4.22": Services, "5.2": Services, "": Reboot}},
		{"/etc/systemd/system/kubelet.service.d/40-kubelet-crio-image-credential-provider.conf", map[string]Effect{"4.21": Reboot, "4.22": Services}},
		{"/etc/iri-registry/certs/tls.crt", map[string]Effect{"4.21": Reboot, "4.22": Services}},
		{"/usr/local/bin/load-registry-image.sh", map[string]Effect{"4.21": Reboot, "4.22": Services}},
		{"/etc/pki/ca-trust/source/anchors/iri-root-ca.crt", map[string]Effect{"4.21": Reboot, "4.22": Services}},
		{"iri-registry.service", map[string]Effect{"4.21": Reboot, "4.22": Services, "": Reboot}},
		{"/etc/nmstate/openshift/a.yml", map[string]Effect{"4.15": Reboot, "4.16": Files, "5.2": Files, "": Reboot}},
		{"/etc/containers/registries.d/a.yaml", map[string]Effect{"4.15": Reboot, "4.16": Services, "5.2": Services, "": Reboot}},
		{"/etc/mco/internal-registry-pull-secret.json", map[string]Effect{"4.13": Reboot, "4.14": Files, "4.15": Files, "4.16": Reboot, "": Reboot}},
		{"/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt", map[string]Effect{"4.13": Reboot, "4.14": Services, "5.2": Services, "": Reboot}},
		{"/etc/kubernetes/kubelet-ca.crt", map[string]Effect{"4.12": Files, "4.16": Files, "4.17": Reboot, "": Reboot}},
		{"/var/lib/kubelet/config.json", map[string]Effect{"4.12": Files, "5.2": Files, "": Files}},
	} {
		for release, want := range tt.effects {
			kind := kindUnit
			if strings.HasPrefix(tt.name, "/") {
				kind = kindFile
			}
			got, _ := clusterDefaults(release).outcome([]Change{{Kind: kind, Name: tt.name}})
			testkit.Equal(testkit.In(t, tt.name, release), want, got)
		}
	}
	// A policy implies such a release.
	got, _ := parsePolicy([]byte(policyObject), "").outcome([]Change{{Kind: kindFile, Name: "/etc/nmstate/openshift/a.yml"}})
	testkit.Equal(testkit.In(t, "with a policy"), Files, got)
}

// TestDiffPage: docs/upgrade.md has the same rules as the code.
func TestDiffPage(t *testing.T) {
	const begin, end, file = "<!-- table rules -->\n", "<!-- end rules -->\n", "../../docs/upgrade.md"
	var b strings.Builder
	b.WriteString("| file, folder or unit | releases | what the operator does |\n|---|---|---|\n")
	for _, r := range operatorRules {
		what := strings.Join(lists.Map(r.Actions, action.String), ", ")
		switch r.Actions[0].Type {
		case actionNone:
			what = "files only"
		case actionSpecial:
			what = "drain, reload crio.service; no drain if nothing but mirrors by digest were added"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Name, assets.Span(r.from, r.to), what)
	}
	page := string(testkit.ReadFile(t, file))
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	testkit.Kept(t, file, []byte(before+begin+b.String()+end+after), *update)
}
