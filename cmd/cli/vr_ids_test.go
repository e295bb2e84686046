package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

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
	if must(t, "render", "clusters/cnf10") != before {
		t.Error("the cluster that was fine has changed")
	}
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
	if got := read(t, "clusters/b/vipgen.yaml"); !strings.HasSuffix(got, "    virtualRouterID: 52\n") {
		t.Error(got)
	}
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
	if _, err := os.Stat("vipgen.yaml"); err != nil {
		t.Error(err)
	}
	exits(t, command.Finding, "vr-ids", "managed", "--fix").has("cannot be removed: ", "OpenShift's own keepalived has it")
	for _, args := range []string{"vr-ids a --fix", "vr-ids . --reserve 300", "vr-ids . --scan not-a-scan.json", "vr-ids flat/*.yaml --fix", "vr-ids Bad_Name"} {
		exits(t, command.Input, strings.Fields(args)...)
	}
}
