package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/day2/adopt"
	"github.com/vipgen/vipgen/internal/testkit"
)

// layLive changes into a directory with an export of a cluster.
func layLive(t *testing.T) string {
	t.Helper()
	testkit.Deterministic(t)
	data := testkit.ReadFile(t, "../../examples/export/before.yaml")
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"live.yaml": string(data)})
	return string(data)
}

// The written directory renders without a change, is compared with later exports, and applies
// as it is.
func TestAdopt(t *testing.T) {
	live := layLive(t)
	plan := must(t, "adopt", "live.yaml")
	written := must(t, "adopt", "live.yaml", "--dir", "demo", "--canary", "first", "--allow-default-image")
	testkit.Equal(t, plan+"\nNext: demo/STEPS.md\n", written)
	testkit.Contains(t, plan,
		"\nReplaced by vipgen's\n  /etc/keepalived/monitor.conf (master, worker): ",
		"\nfiles of your MachineConfigs that vipgen's replace\n  pool worker: file /etc/keepalived/monitor.conf: ",
		"\n  master: 1 reboot with a node disruption policy, 2 reboots without; with vipgen migrate 1 and 4\n",
	)
	must(t, "render", "demo/install-config.yaml", "--dir", "demo/rendered", "--check", "--format", "machineconfig")
	if out := must(t, "adopt", "live.yaml", "--dir", "demo", "--check"); !strings.HasSuffix(out, "no change\n") {
		t.Error(out)
	}
	// After the directory was applied, with one of the operator's files changed.
	var applied strings.Builder
	for name, data := range snapshot(t, "demo") {
		if strings.HasPrefix(name, "demo/rendered/machineconfigs/") {
			applied.WriteString("---\n" + data)
		}
	}
	lay(t, map[string]string{"later.yaml": live + applied.String()})
	if out := must(t, "adopt", "later.yaml", "--dir", "demo", "--check"); !strings.HasSuffix(out, "no change\n") {
		t.Error(out)
	}
	const script = "data:,%23%20%2Fusr%2Flocal%2Fbin%2Fconfigure-ip-forwarding.sh"
	lay(t, map[string]string{"later.yaml": strings.ReplaceAll(live, script, "data:,%23%20new") + applied.String()})
	exits(t, command.Finding, "adopt", "later.yaml", "--dir", "demo", "--check").has("configure-ip-forwarding.sh (pool worker): changed, as in pool master\n")
	changed := strings.Replace(live, script, "data:,%23%20new", 1)
	lay(t, map[string]string{"later.yaml": changed + applied.String()})
	exits(t, command.Finding, "adopt", "later.yaml", "--dir", "demo", "--check", "--to", "4.19").has(
		"changed by the operator since\n  text /usr/local/bin/configure-ip-forwarding.sh (pool master): changed\n",
		"OpenShift 4.19: HAProxy 2.8, keepalived 2.2.8\n",
		"  /etc/NetworkManager/dispatcher.d/30-static-dhcp (master): kept -> none\n",
	)
	var check struct {
		Changes []struct{ Name string }
		Next    struct{ Contract []struct{ Name string } }
	}
	testkit.Must(t, json.Unmarshal([]byte(exits(t, command.Finding, "adopt", "later.yaml", "--dir", "demo", "--check", "--to", "4.19", "-o", "json").out), &check))
	if len(check.Changes) != 1 || len(check.Next.Contract) == 0 {
		t.Errorf("%+v", check)
	}
	// This is the new base of comparison; entries that are gone are dropped.
	before := snapshot(t, "demo")
	lay(t, map[string]string{"later.yaml": strings.Replace(changed, "recycler-pod.yaml", "criometricsproxy.yaml", 1) + applied.String()})
	exits(t, command.OK, "adopt", "later.yaml", "--dir", "demo", "--update").silently().begins("wrote ")
	if out := must(t, "adopt", "later.yaml", "--dir", "demo", "--check"); !strings.HasSuffix(out, "no change\n") {
		t.Error(out)
	}
	after := snapshot(t, "demo")
	const gone = "demo/operator/files/master/etc/kubernetes/manifests/recycler-pod.yaml"
	if _, there := after[gone]; there || before[gone] == "" || before["demo/vipgen.yaml"] != after["demo/vipgen.yaml"] || len(after) != len(before)-1 {
		t.Errorf("%d files before, %d after", len(before), len(after))
	}
}

// An unknown file, a shadowed one and usage errors: nothing is written.
func TestAdoptRefuses(t *testing.T) {
	live := layLive(t)
	mc := func(name, notes, file string) string {
		return live + "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata:\n  name: " + name + "\n  labels: {machineconfiguration.openshift.io/role: master}\n  annotations: {" + notes +
			"}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: " + file + ", contents: {source: \"data:,x\"}}\n"
	}
	lay(t, map[string]string{
		"unknown.yaml": mc("00-new", "a: b", "/etc/kubernetes/manifests/kube-vip.yaml"), "full/mine": "mine",
		"shadowed.yaml": mc("99-zz", "a: b", "/etc/NetworkManager/conf.d/99-vipgen.conf"),
		"pool.yaml":     strings.Replace(mc("50-infra-site", "a: b", "/etc/NetworkManager/conf.d/99-vipgen.conf"), "role: master}\n  annotations: {a: b", "role: infra}\n  annotations: {a: b", 1),
	})
	before := snapshot(t, ".")
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"adopt unknown.yaml --dir new", command.Input, "file /etc/kubernetes/manifests/kube-vip.yaml: found it in MachineConfig 00-new of the operator"},
		{"adopt shadowed.yaml --dir new --allow-default-image", command.Shadowed, "[shadowed]"},
		{"adopt shadowed.yaml --accept 99-zz", command.OK, ""},
		{"adopt pool.yaml", command.Shadowed, "it also in MachineConfig 50-infra-site of another owner, which the operator merges after 99-worker-vipgen (pool infra)"},
		{"adopt unknown.yaml --accept /etc/kubernetes/manifests/kube-vip.yaml", command.OK, ""},
		{"adopt live.yaml --dir new", command.Input, "expected an image in a registry that nodes reach, by --agent-image [default-image]\n  1. skopeo copy "},
		{"adopt live.yaml --agent-image a:b:c", command.Input, "--agent-image: expected an image"},
		{"adopt live.yaml --dir full", command.Input, "full: error: found files in it"},
		{"adopt", command.Input, "missing: FILE|DIR"},
		{"adopt live.yaml live.yaml", command.Input, "unexpected argument"},
		{"adopt no-such", command.Failed, "no such file"},
		{"adopt live.yaml --to 4.19", command.Input, "--to needs --check"},
		{"adopt live.yaml --update", command.Input, "missing: --dir DIR"},
		{"adopt live.yaml --update --check", command.Input, "--check and --update cannot be used together"},
		{"adopt live.yaml --update --dir full", command.Input, "no record of an adopted cluster"},
		{"adopt live.yaml --update --dir full --to 4.19", command.Input, "of no use with --update"},
		{"adopt live.yaml --check", command.Input, "missing: --dir DIR"},
		{"adopt live.yaml --check --dir full --to 3.11", command.Input, "--to 3.11: expected a release"},
		{"adopt live.yaml --check --dir full", command.Input, "no record of an adopted cluster"},
		{"adopt live.yaml --check --dir no-such", command.Failed, "no such file"},
		{"adopt live.yaml --canary worker", command.Input, "--canary worker: expected the name of a new pool"},
		{"adopt live.yaml --canary-node worker-0", command.Input, "--canary-node needs --canary"},
		{"adopt live.yaml --canary c --canary-node x;y", command.Input, "expected the name of a node"},
	} {
		exits(t, tt.code, strings.Fields(tt.args)...).reports(tt.want)
	}
	testkit.Equal(t, before, snapshot(t, "."))
}

// TestSteps follows STEPS.md on the exported cluster: oc changes the next export, and vipgen
// prints what the step announces.
func TestSteps(t *testing.T) {
	cluster := map[string]string{"": layLive(t)}
	must(t, "adopt", "live.yaml", "--dir", "demo", "--agent-image", "registry.example.com/vipgen-agent:v1")
	t.Chdir("demo")
	out, checked := "", 0
	for _, block := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)\n```").FindAllStringSubmatch(read(t, adopt.StepsName), -1) {
		if block[1] == "text" {
			for want := range strings.SplitSeq(block[2], "\n") {
				checked++
				testkit.Contains(t, out, "\n"+want+"\n")
			}
			continue
		}
		out = ""
		for line := range strings.SplitSeq(strings.ReplaceAll(block[2], "\\\n", ""), "\n") {
			out += followStep(t, line, cluster)
		}
		if strings.Contains(block[2], "vipgen render") && strings.Contains(out, ": reboot") {
			t.Errorf("the migration reboots:\n%s", out)
		}
	}
	testkit.Equal(t, 5, checked)
}

// followStep runs a command of STEPS.md and returns the output of vipgen; cluster holds the
// objects by file.
func followStep(t *testing.T, line string, cluster map[string]string) string {
	t.Helper()
	words := strings.Fields(line)
	switch {
	case words[0] == "vipgen":
		if words[1] == "render" { // the migration: the step asks for this edit
			lay(t, map[string]string{"vipgen.yaml": strings.Replace(read(t, "vipgen.yaml"), "    profile: classic\n", "", 1)})
		}
		return step(t, words[1:])
	case strings.HasPrefix(line, "oc get "):
		var objects []string
		for _, name := range slices.Sorted(maps.Keys(cluster)) {
			objects = append(objects, cluster[name])
		}
		lay(t, map[string]string{words[len(words)-1]: strings.Join(objects, "---\n")})
	case strings.HasPrefix(line, "oc apply -f "):
		files, err := filepath.Glob(words[3] + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files", line)
		}
		for _, name := range files {
			data := testkit.ReadFile(t, name)
			cluster[name] = string(data)
		}
	case !slices.Contains([]string{"oc wait", "oc patch"}, strings.Join(words[:2], " ")):
		t.Fatalf("unexpected: %s", line)
	}
	return ""
}

// The order that avoids a split brain: refused while nodes run other settings, then allowed,
// then done.
func TestRemove(t *testing.T) {
	live := layLive(t)
	must(t, "adopt", "live.yaml", "--dir", "demo", "--allow-default-image")
	node := func(running string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata:\n  name: master-0\n  annotations: {vipgen.io/vrrp: '{\"running\":\"" + running + "\"}'}\n"
	}
	master, worker := "---\n"+read(t, "demo/rendered/machineconfigs/99-master-vipgen.yaml"), "---\n"+read(t, "demo/rendered/machineconfigs/99-worker-vipgen.yaml")
	lay(t, map[string]string{
		"fast.yaml":    live + master + worker + node("fast/unicast/v3/40ms"),
		"classic.yaml": live + master + worker + node("classic/unicast/v2/1s"),
		"partly.yaml":  live + master + node("classic/unicast/v2/1s"),
		"gone.yaml":    live + node("classic/unicast/v2/1s"),
	})
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"remove fast.yaml", command.Finding, []string{"1. every node as OpenShift's own keepalived: done\n", "2. wait until every node runs it: now\n  - master-0 runs \"fast/unicast/v3/40ms\"\n", "Do not delete vipgen's MachineConfigs yet.\n"}},
		{"remove classic.yaml", command.OK, []string{"pool master: 99-master-vipgen; when it is deleted: reboot, and 10 files of the operator's come back\n", "    oc delete machineconfig 99-master-vipgen\n", "may be deleted now.\n"}},
		{"remove partly.yaml", command.OK, []string{"pool worker: nothing of vipgen's\n", "may be deleted now.\n"}},
		{"remove gone.yaml", command.OK, []string{"5. clean up: now\n  - annotation vipgen.io/vrrp on master-0\n", "clean up.\n"}},
	} {
		exits(t, tt.code, strings.Fields(tt.args)...).has(tt.want...)
	}
	// One pool deleted while the other runs fast.
	lay(t, map[string]string{"demo/vipgen.yaml": strings.Replace(read(t, "demo/vipgen.yaml"), "profile: classic", "profile: fast", 1)})
	must(t, "render", "demo/install-config.yaml", "--dir", "demo/rendered")
	lay(t, map[string]string{"split.yaml": live + "---\n" + read(t, "demo/rendered/machineconfigs/99-master-vipgen.yaml") + node("fast/unicast/v3/40ms")})
	split := exits(t, command.Finding, "remove", "split.yaml").has("SPLIT BRAIN: pool worker runs OpenShift's keepalived, pool master does not receive its advertisements: ").out
	testkit.Equal(testkit.In(t, split), true, strings.HasSuffix(split, "\nSplit brain: put the deleted MachineConfigs back before anything else.\n"))
	var got struct {
		MayDelete bool
		Steps     []struct{ State string }
	}
	out := must(t, "remove", "classic.yaml", "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || !got.MayDelete || len(got.Steps) != 5 {
		t.Errorf("%v\n%s", err, out)
	}
	for args, want := range map[string]int{"remove": command.Input, "remove no-such": command.Failed, "remove demo/install-config.yaml": command.Input, "remove classic.yaml -o yaml": command.Input, "remove classic.yaml --i-checked master-0-is-off": command.Input} {
		exits(t, want, strings.Fields(args)...).silently()
	}
}
