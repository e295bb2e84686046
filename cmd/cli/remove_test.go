package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
)

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
	if !strings.HasSuffix(split, "\nSplit brain: put the deleted MachineConfigs back before anything else.\n") {
		t.Error(split)
	}
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
