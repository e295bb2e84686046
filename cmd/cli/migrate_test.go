package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMigratePlan(t *testing.T) {
	good(t)
	out := must(t, "migrate", "plan", "--mode", "multicast")
	testkit.Contains(t, out,
		"from  fast (VRRPv3, 40ms, unicast)", "to    fast (VRRPv3, 40ms, multicast)", "do not answer for 160ms at most", "vipgen diff live.yaml DIR/machineconfigs",
		"mode: multicast", "99-master-vipgen.mode, 99-worker-vipgen.mode", "vipgen-agent status",
	)
	exits(t, command.OK, "migrate", "plan", "--profile", "fast").has("nothing to do, the input has fast (VRRPv3, 40ms, unicast) already").lacks("Steps")
	out = must(t, "migrate", "plan", "--profile", "classic", "--at", "2026-05-02T05:00:00+02:00")
	testkit.Contains(t, out, "at    2026-05-02T03:00:00Z, if every node is ready")
	short := must(t, "migrate", "install-config.yaml", "--mode", "multicast")
	testkit.Equal(testkit.In(t, "a file alone"), must(t, "migrate", "plan", "install-config.yaml", "--mode", "multicast"), short)
	out = must(t, "migrate", "plan", "--mode", "multicast", "--without", "worker-3,worker-4")
	testkit.Contains(t, out, "  without:\n  - worker-3\n  - worker-4\n", "Left out: worker-3, worker-4.", "Power off a node")
	entries, _ := os.ReadDir(".")
	testkit.Equal(t, 1, len(entries))
}

func TestMigrateWrite(t *testing.T) {
	good(t)
	must(t, "migrate", "write", "--profile", "custom", "--advert-interval", "100ms", "--at", "2026-05-02T03:00:00Z", "--dir", "migration")
	text := testkit.ReadFile(t, "migration/files/etc/keepalived/monitor-user.conf")
	m, err := v1alpha1.ParseModeFile(text)
	testkit.Must(testkit.In(t, string(text)), err)
	if m.Profile != v1alpha1.ProfileCustom || m.AdvertInterval.Milliseconds() != 100 || m.Time == nil {
		t.Errorf("%s", text)
	}
	for _, role := range []string{"master", "worker"} {
		name := "migration/machineconfigs/99-" + role + "-vipgen.mode.yaml"
		testkit.Contains(t, read(t, name), "\n  name: 99-"+role+"-vipgen.mode\n", "machineconfiguration.openshift.io/role: "+role+"\n")
		testkit.Contains(t, must(t, "inspect", "--contents", name), "/etc/keepalived/monitor-user.conf", "advertInterval: 100ms")
	}
}

func TestMigrateRefuses(t *testing.T) {
	good(t)
	for args, want := range map[string]string{
		"migrate plan": "missing: --mode or --profile",
		"migrate plan --mode unicast --without Worker_3":      "without: found",
		"migrate plan --mode broadcast":                       "mode: found",
		"migrate plan --profile custom":                       "advertInterval is missing",
		"migrate plan --profile custom --advert-interval x":   "--advert-interval",
		"migrate plan --profile custom --advert-interval 1ms": "10ms to 40.95s",
		"migrate plan --mode unicast --at tomorrow":           "--at \"tomorrow\"",
		"migrate write --mode multicast":                      "missing: --dir DIR",
		"migrate write --profile fast --dir migration":        "nothing to do",
	} {
		exits(t, command.Input, strings.Fields(args)...).reports(want)
	}
}

const threeNodes = "--node a=192.0.2.10 --node b=192.0.2.11 --node c=192.0.2.12"

// A directory is written completely, compared, and follows the request.
func TestMetalLBDirectory(t *testing.T) {
	good(t)
	args := func(more string) []string {
		return strings.Fields("metallb --address 192.0.2.17 " + threeNodes + " --dir out " + more)
	}
	exits(t, command.Finding, args("--check")...).has("out/service.yaml: missing")
	must(t, args("--hostname api.corp.example")...)
	must(t, args("--hostname api.corp.example --check")...)
	for _, name := range []string{"ipaddresspool", "l2advertisement", "service", "endpointslice-ipv4", "certificate/apiserver"} {
		if snapshot(t, "out")["out/"+name+".yaml"] == "" {
			t.Errorf("no %s.yaml", name)
		}
	}
	must(t, args("--bgp-peer 192.0.2.1=64512 --asn 64500")...)
	after := snapshot(t, "out")
	if after["out/l2advertisement.yaml"] != "" || after["out/certificate/apiserver.yaml"] != "" || after["out/bgppeer-1.yaml"] == "" {
		t.Errorf("files are %v", after)
	}
}
