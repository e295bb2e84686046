package cli

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// dependencies returns the packages that vipgen is built from for a system.
func dependencies(t *testing.T, system string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "../vipgen", "../kubectl-vipgen")
	cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	testkit.Must(t, err)
	return strings.Fields(string(out))
}

const agentPackages = "github.com/vipgen/vipgen/agent/"

// notOffline lists packages that the offline program must not import: the lab and what tests
// share with it, networks, and clients of an API server.
var notOffline = []string{
	"github.com/vipgen/vipgen/lab", "github.com/vipgen/vipgen/internal/testbed", "github.com/vipgen/vipgen/internal/testkit",
	"github.com/gopacket/gopacket", "github.com/mdlayher/netlink", "github.com/vishvananda/netlink", "k8s.io/client-go",
}

// isAgents reports whether a package belongs to the agent. The offline program may import only
// the published state of jobs, which status reads.
func isAgents(p string) bool {
	return strings.HasPrefix(p, agentPackages) && p != agentPackages+"state"
}

// The offline program holds no code of nodes, and nothing of the lab.
func TestDependencies(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		packages := dependencies(t, system)
		if !slices.Contains(packages, "github.com/vipgen/vipgen/render") {
			t.Fatalf("not the packages of vipgen: %v", packages)
		}
		for _, p := range packages {
			if isAgents(p) || slices.ContainsFunc(notOffline, func(other string) bool { return p == other || strings.HasPrefix(p, other+"/") }) {
				t.Errorf("%s: depends on %s", system, p)
			}
		}
	}
}
