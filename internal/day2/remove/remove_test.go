package remove_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/day2/remove"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

const classic, fast = "classic/unicast/v2/1s", "fast/unicast/v3/40ms"

// live is the export of a cluster without vipgen, and the install-config that adopt makes of it.
var live = sync.OnceValues(func() (before render.File, installConfig string) {
	data, err := os.ReadFile("../../../examples/export/before.yaml")
	if err != nil {
		panic(err)
	}
	before = render.File{Name: "live.yaml", Data: data}
	plan, list := adopt.Read([]render.File{before}, adopt.Options{})
	if plan == nil {
		panic(list.Error())
	}
	return before, string(plan.Import.InstallConfig)
})

// cluster is the export of a cluster whose pools have vipgen's MachineConfigs, for the given
// spec.vrrp and other fields of spec.
func cluster(t *testing.T, vrrp, more string, pools ...string) []render.File {
	t.Helper()
	return moved(t, strings.NewReplacer(), vrrp, more, pools...)
}

// moved is such a cluster with other addresses in its install-config.
func moved(t *testing.T, vips *strings.Replacer, vrrp, more string, pools ...string) []render.File {
	t.Helper()
	before, installConfig := live()
	text := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec:\n  openshiftVersion: \"4.18\"\n  vrrp: {" + vrrp + "}\n"
	if more == "" {
		more = "ingress: [{name: default, nodeSelector: {}}]"
	}
	text += "  " + more + "\n"
	c, _, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: importer.InstallConfigName, Data: []byte(vips.Replace(installConfig))},
		VIPConfig:     &render.File{Name: importer.VIPConfigName, Data: []byte(text)},
	}, render.Options{})
	testkit.Must(t, err)
	files, err := c.Tree(render.Want{Formats: []render.Format{render.FormatMachineConfig}, Roles: pools})
	testkit.Must(t, err)
	out := []render.File{before}
	for _, f := range files {
		if len(pools) > 0 {
			out = append(out, render.File{Name: f.Path, Data: f.Data})
		}
	}
	return out
}

// nodes returns Nodes that report settings, as NAME=SETTINGS; a trailing "!" marks an
// unfinished update.
func nodes(list ...string) render.File {
	var b strings.Builder
	for _, n := range list {
		name, running, _ := strings.Cut(n, "=")
		running, busy := strings.CutSuffix(running, "!")
		role, _, _ := strings.Cut(name, "-")
		notes := ""
		if running != "" {
			notes = fmt.Sprintf("vipgen.io/vrrp: '{\"running\":%q}', ", running)
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: %s\n  labels: {node-role.kubernetes.io/%s: \"\"}\n  annotations: {%smachineconfiguration.openshift.io/currentConfig: a, machineconfiguration.openshift.io/desiredConfig: %s}\n",
			name, role, notes, map[bool]string{true: "b", false: "a"}[busy])
	}
	return render.File{Name: "nodes.yaml", Data: []byte(b.String())}
}

// TestOrder: the MachineConfigs may be deleted once all nodes run the settings of OpenShift's
// keepalived, and not before; everything still missing is reported.
func TestOrder(t *testing.T) {
	both := []string{"master", "worker"}
	quiet := append(cluster(t, "profile: classic", "", both...), nodes("master-0="+classic, "worker-0="))
	labelled := func(label string) []render.File {
		n := quiet[len(quiet)-1]
		n.Data = []byte(strings.ReplaceAll(string(n.Data), `node-role.kubernetes.io/worker: ""`, label))
		return append(quiet[:len(quiet)-1:len(quiet)-1], n)
	}
	all := func(running string) render.File { return nodes("master-0="+running, "worker-0="+running) }
	for name, tt := range map[string]struct {
		files   []render.File
		options remove.Options
		delete  bool
		states  string // of the five steps
		finding string // of the current step
		split   bool
	}{
		"fast":                    {append(cluster(t, "", "", both...), all(fast)), remove.Options{}, false, "now waits waits waits waits", "pool master: its files ask for " + fast + ", OpenShift's keepalived has " + classic, false},
		"asked to migrate":        {append(cluster(t, "profile: classic", "", both...), all(fast)), remove.Options{}, false, "done now waits waits waits", `master-0 runs "` + fast + `"`, false},
		"one has not migrated":    {append(cluster(t, "profile: classic", "", both...), nodes("master-0="+classic, "worker-0="+fast)), remove.Options{}, false, "done now waits waits waits", "worker-0 runs", false},
		"one reports nothing":     {append(cluster(t, "profile: classic", "", both...), nodes("master-0="+classic, "worker-0=")), remove.Options{}, false, "done now waits waits waits", "worker-0 does not report", false},
		"it is off":               {quiet, remove.Options{Off: []string{"worker-0-is-off"}}, true, "done done done now waits", "99-master-vipgen is there", false},
		"a remote worker":         {labelled(`node.openshift.io/remote-worker: ""`), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"an arbiter":              {labelled(`node-role.kubernetes.io/arbiter: ""`), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"a Windows node":          {labelled(`kubernetes.io/os: windows`), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"one updates":             {append(cluster(t, "profile: classic", "", both...), nodes("master-0="+classic, "worker-0="+classic+"!")), remove.Options{}, false, "done now waits waits waits", "worker-0: its update is not done", false},
		"moved":                   {append(cluster(t, "profile: classic", "", both...), all(classic)), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"multicast":               {append(cluster(t, "profile: classic, mode: multicast, interoperable: false", "", both...), all("classic/multicast/v2/1s")), remove.Options{}, false, "now waits waits waits waits", "ask for classic/multicast", false},
		"other IDs":               {append(cluster(t, "profile: classic, virtualRouterIDs: {ingress: 77}", "", both...), all(classic)), remove.Options{}, false, "now waits waits waits waits", "group ingress: virtual router ID 77", false},
		"a small group":           {append(cluster(t, "profile: classic", "ingress: [{name: default, nodeSelector: {a: b}}]", both...), all(classic)), remove.Options{}, false, "now waits waits waits waits", "group ingress: some nodes are not in it", false},
		"more VIPs":               {append(cluster(t, "profile: classic", "additionalAPIVIPs: [{name: mgmt, vips: [192.0.2.9]}]\n  ingress: [{name: default, nodeSelector: {}}]", both...), all(classic)), remove.Options{}, false, "now waits waits waits waits", "group api-mgmt: OpenShift's keepalived does not have its VIPs", false},
		"worker deleted too soon": {append(cluster(t, "", "", "master"), all(fast)), remove.Options{}, false, "now waits waits waits waits", "pool master: its files ask for", true},
		"worker deleted, asked":   {append(cluster(t, "profile: classic", "", "master"), nodes("master-0="+fast, "worker-0="+classic)), remove.Options{}, false, "done now waits waits waits", "master-0 runs", true},
		"deleted, one runs fast":  {append(cluster(t, "profile: classic", ""), nodes("master-0="+fast+"!", "worker-0="+classic)), remove.Options{}, true, "done now waits waits waits", "master-0: its update is not done", true},
		"a left out node":         {append(cluster(t, "profile: classic", "", both...), nodes("master-0="+classic, "worker-0=nothing")), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"worker deleted":          {append(cluster(t, "profile: classic", "", "master"), all(classic)), remove.Options{}, true, "done done done now waits", "99-master-vipgen is there", false},
		"deleted, updating":       {append(cluster(t, "profile: classic", ""), nodes("master-0="+classic+"!", "worker-0="+classic)), remove.Options{}, true, "done now waits waits waits", "master-0: its update is not done", false},
		"deleted":                 {append(cluster(t, "profile: classic", ""), all(classic)), remove.Options{}, true, "done done done done now", "annotation vipgen.io/vrrp on master-0, worker-0", false},
		"clean":                   {append(cluster(t, "profile: classic", ""), nodes("master-0=", "worker-0=")), remove.Options{}, true, "done done done done done", "", false},
	} {
		r, list := remove.Read(tt.files, tt.options)
		if r == nil {
			t.Errorf("%s: %v", name, list)
			continue
		}
		var states []string
		finding := ""
		for _, s := range r.Steps {
			states = append(states, string(s.State))
			if s.State == remove.Now {
				finding = s.Findings[0]
			}
		}
		if diff := cmp.Diff(tt.states, strings.Join(states, " ")); diff != "" || r.MayDelete != tt.delete || (len(r.SplitBrain) > 0) != tt.split || !strings.Contains(finding, tt.finding) {
			t.Errorf("%s: may delete: %t, split brain %q, finding %q\n%s", name, r.MayDelete, r.SplitBrain, finding, diff)
		}
	}
}

// TestFromExternal: from an external load balancer back to OpenShift's own, the control plane
// first, unless both would hold an address, or nodes may still run vipgen's keepalived.
func TestFromExternal(t *testing.T) {
	for name, tt := range map[string]struct {
		vips, running string
		delete        bool
		states, text  string // text of the current step
	}{
		"an address of both": {"192.0.2.5", "", false, "now waits waits waits waits", "the external load balancer has 192.0.2.5, which OpenShift's keepalived will hold"},
		"stale annotations":  {"192.0.2.250", fast, false, "done now waits waits waits", "oc annotate node --all vipgen.io/vrrp-"},
		"moved":              {"192.0.2.250", "", true, "done done done now waits", "DNS outside of the cluster leads to 192.0.2.5, 192.0.2.7; the control plane goes first"},
	} {
		files := moved(t, strings.NewReplacer("192.0.2.5", tt.vips, "192.0.2.7", "192.0.2.250"), "", "loadBalancer: {type: External}", "master", "worker")
		r, list := remove.Read(append(files, nodes("master-0="+tt.running, "worker-0=")), remove.Options{})
		if r == nil {
			t.Fatal(list)
		}
		var states []string
		text := ""
		for _, s := range r.Steps {
			if states = append(states, string(s.State)); s.State == remove.Now {
				text = strings.Join(append(s.Findings, s.Do...), "\n")
			}
		}
		if diff := cmp.Diff(tt.states, strings.Join(states, " ")); diff != "" || r.MayDelete != tt.delete || len(r.SplitBrain) > 0 || !strings.Contains(text, tt.text) {
			t.Errorf("%s: may delete: %t, split brain %q\n%s\n%s", name, r.MayDelete, r.SplitBrain, text, diff)
		}
		const order = "oc delete machineconfig 99-master-vipgen\noc wait machineconfigpool master --for=condition=Updating --timeout=5m\noc wait machineconfigpool master --for=condition=Updated --timeout=2h\noc delete machineconfig 99-worker-vipgen"
		if tt.delete && !strings.Contains(text, order) {
			t.Errorf("%s: no %q in %q", name, order, text)
		}
	}
}

// A node without a report may hold a VIP: only a node whose machine is known to be off is left
// out, by its name, and never the whole control plane.
func TestConfirmations(t *testing.T) {
	files := append(cluster(t, "profile: classic", "", "master", "worker"), nodes("master-0=", "master-1="+classic, "worker-0="))
	ready := nodes("worker-9=")
	ready.Data = append(ready.Data, "status: {conditions: [{type: Ready, status: \"True\"}]}\n"...)
	files = append(files, ready)
	for _, tt := range []struct {
		off  []string
		want string // of the problem
	}{
		{[]string{"worker-0"}, `--i-checked: found "worker-0", expected the name of a node and -is-off`},
		{[]string{"worker-1-is-off"}, "expected a node of the export"},
		{[]string{"worker-9-is-off"}, "by the export it is Ready"},
		{[]string{"master-0-is-off", "master-1-is-off"}, "at least a node of the control plane"},
		{[]string{"master-0-is-off", "master-1-is-off", "worker-0-is-off"}, "at least a node of the control plane"},
	} {
		if r, list := remove.Read(files, remove.Options{Off: tt.off}); r != nil || !strings.Contains(list.Error(), tt.want) {
			t.Errorf("%q: %v", tt.off, list)
		}
	}
	r, list := remove.Read(files, remove.Options{Off: []string{"master-0-is-off", "worker-0-is-off"}})
	if r == nil {
		t.Fatal(list.Error())
	}
	want := []string{"worker-9 does not report its settings, and may hold a VIP with its old settings: see why its agent is down"}
	if diff := cmp.Diff(want, r.Steps[1].Findings); diff != "" || r.MayDelete || !strings.HasPrefix(r.Steps[3].Do[4], "oc delete node master-0; ") {
		t.Errorf("%s\n%q", diff, r.Steps[3].Do)
	}
}

// Where OpenShift runs no keepalived, no node holds the VIPs afterwards.
func TestNoHolder(t *testing.T) {
	files := append(cluster(t, "", "", "master", "worker"), nodes("master-0="+fast))
	for i := range files {
		files[i].Data = []byte(strings.ReplaceAll(string(files[i].Data), "OpenShiftManagedDefault", "UserManaged"))
	}
	for external, want := range map[bool]string{false: "done done now waits waits", true: "done done done now waits"} {
		r, list := remove.Read(files, remove.Options{ExternalLB: external})
		if r == nil {
			t.Fatal(list.Error())
		}
		var states []string
		for _, s := range r.Steps {
			states = append(states, string(s.State))
		}
		if got := strings.Join(states, " "); got != want || r.MayDelete != external {
			t.Errorf("external %t: %s, may delete %t", external, got, r.MayDelete)
		}
	}
}

// A mode file counts as on the node.
func TestModeFile(t *testing.T) {
	files := append(cluster(t, "profile: classic", "", "master", "worker"), nodes("master-0="+classic))
	files = append(files, render.File{Name: "mode.yaml", Data: []byte("apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: 99-master-vipgen.mode\n  annotations: {vipgen.io/cluster: demo}\n  labels: {machineconfiguration.openshift.io/role: master}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: /etc/keepalived/monitor-user.conf, contents: {source: \"data:,profile%3A%20fast%0A\"}}\n")})
	r, list := remove.Read(files, remove.Options{})
	if r == nil || r.MayDelete || r.Pools[0].Settings != fast || len(r.Pools[0].MachineConfigs) != 2 {
		t.Errorf("%v\n%+v", list, r)
	}
}

// Missing objects are reported at once.
func TestIncomplete(t *testing.T) {
	_, list := remove.Read([]render.File{{Name: "a.yaml", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")}}, remove.Options{})
	testkit.Contains(t, list.Error(), "no MachineConfig of the operator", "no Nodes", "no platform")
	broken := append(cluster(t, "", "", "master", "worker"), nodes("master-0="))
	broken = append(broken, render.File{Name: "mode.yaml", Data: []byte("apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: 99-master-vipgen.mode\n  annotations: {vipgen.io/cluster: demo}\n  labels: {machineconfiguration.openshift.io/role: master}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: /etc/keepalived/monitor-user.conf, contents: {source: \"data:,x\"}}\n")})
	if r, list := remove.Read(broken, remove.Options{}); r != nil || list.Err() == nil {
		t.Errorf("an invalid mode file: %v", list)
	}
}
