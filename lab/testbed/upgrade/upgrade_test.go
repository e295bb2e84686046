package upgrade

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The programs of the previous version are in the history, can be built and run.
func TestBuild(t *testing.T) {
	testkit.Only(t, "lab-upgrade")
	p := Build(t)
	for _, program := range []string{p.Vipgen, p.Agent} {
		if out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "vipgen") {
			t.Errorf("%s version: %v\n%s", program, err, out)
		}
	}
}
