package keepalived

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Whenever the agent is stopped or killed, its keepalived and the VIP go with it, the files on
// disk are valid, and the next agent starts.
func TestEndAtAnyMoment(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	ends := map[string]func(*testing.T, *daemon.Process){
		"SIGTERM": func(t *testing.T, p *daemon.Process) {
			// Before its first announcement it may not have begun.
			begun := p.Output() != ""
			if code := p.Stop(); code != 0 && begun {
				t.Errorf("exit code %d", code)
			}
		},
		"SIGKILL": func(_ *testing.T, p *daemon.Process) { p.Kill() },
	}
	for _, name := range []string{"SIGTERM", "SIGKILL"} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.controlPlane(2)
			n, other := c.nodes["cp-1"], c.nodes["cp-2"]
			n.agent.Stop()
			c.holder(other.name)
			// From before its first instruction until it has settled: these moments are what is
			// tested, so none of them is awaited.
			for moment := range 24 {
				n.start()
				time.Sleep(time.Duration(moment) * 15 * time.Millisecond)
				if moment%3 == 2 { // in the middle of a reload
					n.Write(v1alpha1.ClusterConfigPath, append(c.clusterConfig(t), byte('\n')))
					c.list.SetNode("cp-3", "master", c.host(20+moment).Addr().String())
				}
				ends[name](t, n.agent)
				testkit.Await(t, "nothing to be left", func() bool { return len(n.processes()) == 0 })
				if _, err := os.Stat(n.Path(v1alpha1.KeepalivedConf)); !errors.Is(err, fs.ErrNotExist) {
					n.valid()
				}
				if name == "SIGTERM" {
					testkit.Empty(testkit.In(t, moment), n.linksWith(apiVIP))
					if left, _ := filepath.Glob(n.Path("/etc/keepalived/.*.*.*")); len(left) > 0 {
						t.Errorf("after %d: left behind: %v", moment, left)
					}
				}
			}
			c.holder(other.name)
			n.start()
			n.awaitState("it runs", running)
			other.agent.Stop()
			c.holder(n.name)
		})
	}
}
