package keepalived

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// agentProgram is vipgen-agent, built once for all tests.
var agentProgram string

func TestMain(m *testing.M) { os.Exit(withAgent(m.Run)) }

func withAgent(run func() int) int {
	dir, err := os.MkdirTemp("", "vipgen-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agentProgram = filepath.Join(dir, "vipgen-agent")
	build := exec.Command("go", "build", "-o", agentProgram, "../../cmd/vipgen-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		return 1
	}
	return run()
}
