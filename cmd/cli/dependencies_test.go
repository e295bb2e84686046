package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// dependencies are the packages that vipgen is made of on a system.
func dependencies(t *testing.T, system string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "../vipgen")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

const (
	agentPackages = "github.com/vipgen/vipgen/agent/"
	labPackage    = "github.com/vipgen/vipgen/lab"
)

// ofNodes says whether a package is the agent's. Of these the offline program has what
// status and the lab read: the published state of jobs, and elsewhere than on Linux its types.
func ofNodes(p string) bool { return strings.HasPrefix(p, agentPackages) && p != agentPackages+"state" }

// The offline program holds no code of nodes.
func TestDependencies(t *testing.T) {
	packages := dependencies(t, "linux")
	if !slices.Contains(packages, labPackage) {
		t.Fatalf("not the packages of vipgen: %v", packages)
	}
	for _, p := range packages {
		if ofNodes(p) {
			t.Errorf("depends on %s", p)
		}
	}
}

// Where there is no lab, vipgen has nothing of what a lab takes, so that it builds.
func TestDependenciesElsewhere(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		for _, p := range dependencies(t, system) {
			if strings.HasPrefix(p, labPackage) || ofNodes(p) || strings.HasPrefix(p, "github.com/vishvananda/netlink") {
				t.Errorf("%s: depends on %s", system, p)
			}
		}
	}
}
