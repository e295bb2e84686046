package lab

import (
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/templates/manifest"
)

// TestHardCase27WallClock steps the wall clock of all nodes by an hour, forward and back, while a
// client asks. No namespace has a wall clock of its own, so programs read a stepped one: keepalived
// and HAProxy by libfaketime, agents by a package time that adds what a file says. Monotonic clocks
// are untouched, as when a clock is set; API servers are on time.
func TestHardCase27WallClock(t *testing.T) {
	testkit.Variant(t)
	t.Parallel()
	cfg := Config{Cluster: load(t, demo), Plan: planOf(3, 1), RealAPI: true, Install: installStepped}
	cfg.Images = map[string]container.Image{
		cfg.Cluster.Images.Agent:   {Programs: map[string]string{"/usr/bin/vipgen-agent": steppedAgent(t)}},
		cfg.Cluster.Images.HAProxy: {Distribution: true}, // a file capability would keep libraries from being loaded
	}
	c := newClusterOf(t, cfg)
	for _, by := range []string{"+3600", "-3600"} {
		day := badDay{name: by, do: clock(by), lasts: 25 * time.Second, lost: 0}
		t.Run(day.name, func(t *testing.T) {
			testkit.Alone(t)
			c.t = t
			day.run(t, c)
			c.check(t)
		})
	}
}

// clockFile holds by how many seconds the clock of a node is off. All containers see it.
const clockFile = v1alpha1.RunDir + "/clock"

// clock steps the clocks of all nodes, and back when the fault ends.
func clock(by string) func(*testing.T, *cluster, *node) func() {
	return func(t *testing.T, c *cluster, n *node) func() {
		before := c.restarts()
		step := func(by string) {
			for _, m := range c.nodes {
				// In place: libfaketime and the agent read the file again and again.
				testkit.WriteFile(t, m.Path(clockFile), []byte(by+"\n"))
			}
		}
		step(by)
		off, err := time.ParseDuration(by + "s")
		c.must(err)
		level := "INFO"
		testkit.Await(t, "the agent's clock to be off", func() bool {
			if level == "INFO" {
				level = "DEBUG"
			} else {
				level = "INFO"
			}
			c.must(n.Write(v1alpha1.RunDir+"/log-level", []byte(level)))
			return level == "INFO" && n.logged(off)
		})
		for _, in := range []string{manifest.Keepalived, manifest.HAProxy} {
			out := strings.TrimSpace(n.exec(in, in, "date", "+%s"))
			at, err := time.ParseDuration(out + "s")
			c.must(err)
			if got := at - time.Duration(time.Now().Unix())*time.Second; (got - off).Abs() > 10*time.Second {
				t.Errorf("the clock of %s is off by %v", in, got)
			}
		}
		return func() {
			step("+0")
			testkit.Equal(t, before, c.restarts())
		}
	}
}

// logged reports whether the keepalived job has just logged a change of its level, with its clock off.
func (n *node) logged(off time.Duration) bool {
	for line := range strings.Lines(n.container(manifest.Keepalived, "keepalived").Log()) {
		if !strings.Contains(line, `msg="log level changed"`) {
			continue
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		at, err := time.Parse(time.RFC3339, text)
		if err == nil && (time.Until(at)-off).Abs() < time.Minute {
			return true
		}
	}
	return false
}

// installStepped installs a node whose daemons read clockFile.
func installStepped(n *Node) error {
	if err := errors.Join(n.installRendered(), n.Write(clockFile, []byte("+0\n"))); err != nil {
		return err
	}
	env := "    env:\n"
	for name, value := range map[string]string{
		"LD_PRELOAD":              "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
		"FAKETIME_TIMESTAMP_FILE": clockFile, "FAKETIME_CACHE_DURATION": "1", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
	} {
		env += "    - {name: " + name + ", value: \"" + value + "\"}\n"
	}
	for _, name := range podsIn(n.Path(v1alpha1.ManifestDir)) {
		if name != manifest.Keepalived && name != manifest.HAProxy {
			continue
		}
		file := v1alpha1.ManifestDir + "/" + name + ".yaml"
		data, err := n.Read(file)
		if err != nil {
			return err
		}
		if err := n.Write(file, []byte(strings.ReplaceAll(string(data), "    env:\n", env))); err != nil {
			return err
		}
	}
	return nil
}

// stepped is the part of package time that reads clockFile. The package has these functions for
// files of time zones.
//
//go:embed testdata/stepped.go.txt
var stepped string

// steppedAgent builds the agent with a wall clock that is off by what clockFile says.
func steppedAgent(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	testkit.Must(t, err)
	original := filepath.Join(strings.TrimSpace(string(out)), "src/time/time.go")
	const now = "sec, nsec, mono := runtimeNow()\n"
	source := string(testkit.ReadFile(t, original))
	testkit.Contains(t, source, now)
	source = strings.Replace(source, now, now+"\tsec += stepped\n", 1) + strings.Replace(stepped, "CLOCKFILE", clockFile, 1)
	replaced, overlay, agent := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "vipgen-agent")
	testkit.WriteFile(t, replaced, []byte(source))
	data, err := json.Marshal(map[string]any{"Replace": map[string]string{original: replaced}})
	testkit.Must(t, err)
	testkit.WriteFile(t, overlay, data)
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-overlay", overlay, "-o", agent, "./cmd/vipgen-agent")
	build.Dir, build.Env = testkit.Root(t), append(os.Environ(), "CGO_ENABLED=0")
	testkit.Run(t, build)
	return agent
}
