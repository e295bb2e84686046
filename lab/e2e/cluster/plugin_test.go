package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// checkPlugin reads the cluster by `kubectl vipgen`, as a user would: through the VIP, and by exec
// into the pods of all nodes.
func (c *cluster) checkPlugin() {
	c.t.Helper()
	config := filepath.Join(c.dir, "kubeconfig-plugin")
	c.must(os.WriteFile(config, c.administrator(c.vip.String()), 0o600))
	run := func(args ...string) string {
		c.t.Helper()
		args = append(args, "--client", rig.Tool(c.t, "kubectl"), "--kubeconfig", config, "--namespace", podNamespace)
		cmd := c.client.Command(c.t.Context(), testkit.Plugin(c.t), args...)
		cmd.Env = append(os.Environ(), "HOME="+c.dir)
		var out, complaint bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &complaint
		err := cmd.Run()
		c.t.Logf("kubectl vipgen %s:\n%s%s", args[0], &out, &complaint)
		if code := cmd.ProcessState.ExitCode(); code != command.OK && code != command.Finding || complaint.Len() > 0 {
			c.t.Errorf("kubectl vipgen %s: %v", args[0], err)
		}
		return out.String()
	}
	status, doctor := run("status"), run("doctor")
	for _, n := range c.nodes() {
		testkit.Contains(testkit.In(c.t, n.Name), status, "\n"+n.Name+" ")
		testkit.Lacks(testkit.In(c.t, n.Name), status, "missing-state: "+n.Name)
	}
	if !strings.Contains(doctor, " nodes, ") || !strings.Contains(doctor, c.vip.String()+": ") {
		c.t.Error("doctor has no move of the VIP")
	}
}
