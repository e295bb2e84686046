package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The offline program holds no code of nodes. Of the agent it has what the lab reads: the
// published state of jobs.
func TestDependencies(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../vipgen").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if !slices.Contains(packages, "github.com/vipgen/vipgen/lab") {
		t.Fatalf("not the packages of vipgen: %v", packages)
	}
	const agent = "github.com/vipgen/vipgen/agent/"
	for _, p := range packages {
		if strings.HasPrefix(p, agent) && p != agent+"state" {
			t.Errorf("depends on %s", p)
		}
	}
}
