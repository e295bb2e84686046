package cli

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

const fleetHead = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\n"

// clusterNamed is goodInstallConfig with another name.
func clusterNamed(name string) string {
	return strings.Replace(goodInstallConfig, "name: demo", "name: "+name, 1)
}

// layFleet writes a fleet of three clusters with shared defaults.
func layFleet(t *testing.T) {
	t.Helper()
	testkit.Deterministic(t)
	t.Chdir(t.TempDir())
	lay(t, map[string]string{
		"clusters/fleet.yaml":                 fleetHead + "spec:\n  openshiftVersion: \"4.18\"\n  vrrp: {profile: custom, advertInterval: 50ms}\n",
		"clusters/a/install-config.yaml":      clusterNamed("a"),
		"clusters/eu/b/install-config.yaml":   clusterNamed("b"),
		"clusters/eu/b/vipgen.yaml":           fleetHead + "spec:\n  vrrp: {profile: classic}\n",
		"clusters/eu/c/install-config.yaml":   clusterNamed("c"),
		"clusters/eu/c/vipgen.yaml":           fleetHead + "spec:\n  openshiftVersion: null\n",
		"clusters/.git/x/install-config.yaml": "not looked at",
	})
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, name))
}

// A cluster of a fleet renders to the same bytes alone and with others, in any order; the
// fleet's defaults apply unless the cluster overrides them.
func TestFleetRenders(t *testing.T) {
	layFleet(t)
	must(t, "render", "clusters", "--dir", "out")
	for _, c := range []struct{ name, says, not string }{
		{"a", "advertIntervalMS: 50", ""},
		{"eu/b", "profile: classic", "advertIntervalMS: 50\n"},
		{"eu/c", "advertIntervalMS: 50", ""},
	} {
		must(t, "render", "clusters/"+c.name, "--dir", "alone")
		in := map[string]string{}
		for name, text := range snapshot(t, "out/"+c.name) {
			in["alone"+strings.TrimPrefix(name, "out/"+c.name)] = text
		}
		testkit.Equal(testkit.In(t, c.name), snapshot(t, "alone"), in)
		must(t, "render", "clusters/"+c.name, "--dir", "files", "--format", "files")
		config := read(t, "files/files/master/etc/kubernetes/static-pod-resources/vipgen/cluster.yaml")
		if !strings.Contains(config, c.says) || c.not != "" && strings.Contains(config, c.not) {
			t.Errorf("%s: want %q, not %q:\n%s", c.name, c.says, c.not, config)
		}
	}
	for name, want := range map[string]string{"a": "version: 3.4.0", "eu/b": "version: 3.4.0", "eu/c": "version: 3.2.0"} {
		testkit.Contains(testkit.In(t, name), read(t, "out/"+name+"/machineconfigs/99-master-vipgen.yaml"), want)
	}
	stream := must(t, "render", "clusters/eu/c", "clusters/a", "clusters/eu/b")
	for _, other := range [][]string{{"clusters/eu/b", "clusters/a", "clusters/eu/c"}, {"clusters"}, {"clusters/*"}} {
		testkit.Equal(testkit.In(t, other), stream, must(t, append([]string{"render"}, other...)...))
	}
}

// Any change of a tree or of its input is found and written.
func TestFleetFindsEveryChange(t *testing.T) {
	layFleet(t)
	args := []string{"render", "clusters", "--dir", "out"}
	must(t, args...)
	const config, output = "clusters/a/install-config.yaml", "out/a/machineconfigs/99-master-vipgen.yaml"
	good := read(t, output)
	for name, change := range map[string]func(){
		"the output":  func() { lay(t, map[string]string{output: strings.Replace(good, "enabled: true", "enabled: false", 1)}) },
		"its record":  func() { lay(t, map[string]string{"out/a/.vipgen-files": "old\n", "out/a/old": ""}) },
		"a file gone": func() { _ = os.Remove(output) },
		"the input": func() {
			lay(t, map[string]string{config: strings.Replace(clusterNamed("a"), "192.0.2.3", "192.0.2.4", 1)})
		},
		"the fleet": func() { lay(t, map[string]string{"clusters/fleet.yaml": fleetHead}) },
		"options":   func() { args = append(args, "--format", "machineconfig") },
	} {
		change()
		exits(testkit.In(t, name), command.Finding, append(args, "--check")...)
		must(t, args...)
		must(t, append(args, "--check")...)
	}
}

func TestFleetWithABadCluster(t *testing.T) {
	layFleet(t)
	lay(t, map[string]string{
		"clusters/bad/install-config.yaml":   strings.NewReplacer("192.0.2.2", "198.51.100.2", "    loadBalancer:\n      type: UserManaged\n", "").Replace(clusterNamed("bad")),
		"clusters/worse/install-config.yaml": "apiVersion: v1\n",
	})
	const report = "clusters/bad/install-config.yaml:10:15: error: platform.baremetal.apiVIPs[0]: found 198.51.100.2, expected an address in 192.0.2.0/24 [vip-outside-network]\n"
	exits(t, command.Input, "render", "clusters", "--dir", "out", "--all-or-nothing").reports(report).ends("vipgen: 2 of 5 clusters failed; nothing was written\n")
	_, err := os.Stat("out")
	testkit.Fails(testkit.In(t, "nothing is written"), err, "")
	exits(t, command.Input, "render", "clusters", "--dir", "out").reports(report, "clusters/worse/install-config.yaml:1:1: error: baseDomain").
		ends("vipgen: 2 of 5 clusters failed; the others were written\n")
	for name, want := range map[string]bool{"a": true, "eu/b": true, "eu/c": true, "bad": false, "worse": false} {
		_, err := os.Stat("out/" + name)
		testkit.Equal(testkit.In(t, name, err), want, err == nil)
	}
	exits(t, command.Input, "render", "clusters", "--dir", "out", "--check").reports("of the others 0 differ")
	// A cluster that cannot be written.
	lay(t, map[string]string{"blocked/a": "a file"})
	exits(t, command.Failed, "render", "clusters/a", "clusters/eu/b", "--dir", "blocked").reports("1 of 2 clusters failed")
	_, err = os.Stat("blocked/b")
	testkit.Must(t, err)
	// Defaults that cannot be read are reported once.
	lay(t, map[string]string{"clusters/fleet.yaml": fleetHead + "spec:\n  vrpp: {}\n"})
	again := exits(t, command.Input, "render", "clusters").report
	testkit.Equal(t, 1, strings.Count(again, `clusters/fleet.yaml:4:3: error: spec.vrpp: found "vrpp"`))
}

// A problem is reported at the value's position, which may be in the fleet's file.
func TestFleetProblemsHavePlaces(t *testing.T) {
	layFleet(t)
	lay(t, map[string]string{"clusters/fleet.yaml": fleetHead + "spec:\n  vrrp: {profile: custom, advertInterval: 55ms}\n"})
	exits(t, command.Input, "validate", "clusters/a").reports("clusters/fleet.yaml:4:43: error: spec.vrrp.advertInterval: found 55ms")
	lay(t, map[string]string{"clusters/eu/c/vipgen.yaml": fleetHead + "spec:\n  vrrp:\n    advertInterval: 45ms\n"})
	exits(t, command.Input, "validate", "clusters/eu/c").reports("clusters/eu/c/vipgen.yaml:5:21: error: spec.vrrp.advertInterval: found 45ms")
	exits(t, command.OK, "validate", "clusters/eu/b")
}

// Files above a Git repository are ignored.
func TestDefaultsOfTheRepository(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"fleet.yaml": "nonsense", "repo/.git": "", "repo/x/install-config.yaml": goodInstallConfig})
	must(t, "validate", "repo/x")
	t.Chdir("repo/x")
	must(t, "validate")
	lay(t, map[string]string{"../fleet.yaml": fleetHead + "spec: {vrrp: {profile: classic}}\n"})
	testkit.Contains(t, must(t, "validate"), "classic")
	lay(t, map[string]string{"other.yaml": fleetHead})
	testkit.Contains(t, must(t, "validate", "--fleet", "other.yaml"), "fast")
}

func TestFleetForgetsClusters(t *testing.T) {
	layFleet(t)
	must(t, "render", "clusters", "--dir", "out")
	lay(t, map[string]string{"out/eu/b/notes": "mine"})
	testkit.Must(t, os.RemoveAll("clusters/eu"))
	exits(t, command.Finding, "render", "clusters", "--dir", "out", "--check").has("out/eu/c/machineconfigs/99-master-vipgen.yaml: no longer rendered")
	must(t, "render", "clusters/a", "clusters/a/install-config.yaml", "--dir", "out") // some of the fleet: the others stay
	_, err := os.Stat("out/eu/c/manifests")
	testkit.Check(t, err)
	must(t, "render", "clusters", "--dir", "out")
	_, err = os.Stat("out/eu/c")
	testkit.Fails(testkit.In(t, "the tree of a cluster that is gone"), err, "")
	testkit.Equal(t, map[string]string{"out/eu/b/notes": "mine"}, snapshot(t, "out/eu/b"))
}

func TestFleetUsage(t *testing.T) {
	layFleet(t)
	lay(t, map[string]string{"two.yaml": instanceNamed("c") + "---\n" + instanceNamed("d")})
	for _, args := range []string{
		"render clusters --merge a.ign", "render clusters --install-dir x", "render clusters --config x",
		"render clusters --check", "render clusters --dir x --beside y", "render clusters --beside a/b", "render two.yaml --beside rendered", "render clusters --beside ..", "render - --beside x",
	} {
		if code, _, errOut := run(goodInstallConfig, strings.Fields(args)...); code != command.Input || errOut == "" {
			t.Errorf("%s: exit code %d\n%s", args, code, errOut)
		}
	}
}

// at returns a cluster with the given name and VIPs.
func at(name, api, ingress string) string {
	return strings.NewReplacer("192.0.2.2", "192.0.2."+api, "192.0.2.3", "192.0.2."+ingress).Replace(clusterNamed(name))
}

func TestFleetVRIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{
		"clusters/cnf10/install-config.yaml": at("cnf10", "10", "11"),
		"clusters/cnf11/install-config.yaml": at("cnf11", "12", "13"),
		"clusters/cnf11/vipgen.yaml":         fleetHead + "spec:\n  # fast enough\n  vrrp:\n    profile: fast\n",
		"clusters/other/install-config.yaml": strings.ReplaceAll(at("cnf10", "10", "11"), "192.0.2.", "198.51.100."),
	})
	exits(t, command.Finding, "vr-ids", "clusters").has(
		"147  cnf10's api, cnf11's ingress  192.0.2.0/24\n",
		"  clusters/cnf11/vipgen.yaml: spec.vrrp.virtualRouterIDs.ingress: 148 (was 147)\n",
		"1 collision in 3 clusters\n",
	)
	before := must(t, "render", "clusters/cnf10")
	testkit.Contains(t, must(t, "vr-ids", "clusters", "--fix"), "\nWritten:\n")
	want := fleetHead + "spec:\n  # fast enough\n  vrrp:\n    profile: fast\n    virtualRouterIDs:\n      ingress: 148\n"
	testkit.Equal(t, want, read(t, "clusters/cnf11/vipgen.yaml"))
	testkit.Equal(t, "no collision in 3 clusters\n", must(t, "vr-ids", "clusters"))
	testkit.Equal(testkit.In(t, "the cluster that was fine"), before, must(t, "render", "clusters/cnf10"))
	must(t, "render", "clusters", "--dir", "out") // the file is unchanged
}

// Additional API VIPs have IDs as well, which can collide, are reserved and are reassigned.
func TestVRIDsOfMoreAPIVIPs(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{
		"clusters/a/install-config.yaml": at("a", "10", "11"),
		"clusters/a/vipgen.yaml":         fleetHead + "spec:\n  additionalAPIVIPs:\n  - name: mgmt\n    vips: [192.0.2.17]\n    virtualRouterID: 50\n",
		"clusters/b/install-config.yaml": at("b", "12", "13"),
		"clusters/b/vipgen.yaml":         fleetHead + "spec:\n  additionalAPIVIPs:\n  - name: mgmt\n    vips: [192.0.2.18]\n    virtualRouterID: 50\n",
	})
	exits(t, command.Finding, "vr-ids", "clusters").has("50  a's api-mgmt, b's api-mgmt  192.0.2.0/24\n")
	must(t, "vr-ids", "clusters", "--fix", "--reserve", "51")
	got := read(t, "clusters/b/vipgen.yaml")
	testkit.Equal(testkit.In(t, got), true, strings.HasSuffix(got, "    virtualRouterID: 52\n"))
}

func TestReservedVRIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{
		"fleet.yaml":                    fleetHead + "spec: {vrrp: {reservedRouterIDs: [97]}}\n", // demo's API
		"install-config.yaml":           goodInstallConfig,
		"scan.json":                     `{"routers": [{"id": 79, "source": "192.0.2.77", "addresses": ["192.0.2.78"]}, {"id": 79, "source": "192.0.2.8", "addresses": ["192.0.2.3"]}]}`,
		"own.json":                      `{"routers": [{"id": 79, "source": "192.0.2.8", "addresses": ["192.0.2.3"]}]}`,
		"not-a-scan.json":               `{}`,
		"flat/a.yaml":                   at("cnf10", "10", "11"),
		"flat/b.yaml":                   at("cnf11", "12", "13"),
		"managed/a/install-config.yaml": strings.Replace(at("same", "20", "21"), "UserManaged", "OpenShiftManagedDefault", 1),
		"managed/b/install-config.yaml": strings.Replace(strings.Replace(at("same", "22", "23"), "UserManaged", "OpenShiftManagedDefault", 1), "example.com", "example.org", 1),
	})
	exits(t, command.Input, "validate").reports("[router-id-taken]", "vr-ids --fix")
	var r struct {
		Collisions []struct {
			ID  int
			Why string
		}
		Overrides []struct{ From, To int }
	}
	testkit.Must(t, json.Unmarshal([]byte(exits(t, command.Finding, "vr-ids", "./install-config.yaml", "--scan", "scan.json", "-o", "json").out), &r))
	if len(r.Collisions) != 2 || len(r.Overrides) != 2 || !strings.Contains(r.Collisions[0].Why, "192.0.2.77") {
		t.Errorf("%+v", r)
	}
	must(t, "vr-ids", "install-config.yaml", "--scan", "own.json", "--fix")
	must(t, "validate")
	_, err := os.Stat("vipgen.yaml")
	testkit.Check(t, err)
	exits(t, command.Finding, "vr-ids", "managed", "--fix").has("cannot be removed: ", "OpenShift's own keepalived has it")
	for _, args := range []string{"vr-ids a --fix", "vr-ids . --reserve 300", "vr-ids . --scan not-a-scan.json", "vr-ids flat/*.yaml --fix", "vr-ids Bad_Name"} {
		exits(t, command.Input, strings.Fields(args)...)
	}
}

func TestOrdered(t *testing.T) {
	stop := errors.New("stop")
	var got []int
	err := ordered(100, func(i int) int { return i * i }, func(i, square int) error {
		if got = append(got, square); i == 3 {
			return stop
		}
		return nil
	})
	testkit.Equal(t, true, err == stop)
	testkit.Equal(t, []int{0, 1, 4, 9}, got)
}
