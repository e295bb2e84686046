package keepalived

import (
	"context"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// log is written by many goroutines.
type log struct{ testkit.Log }

// messages returns the logged messages, sorted.
func (l *log) messages() (out []string) {
	for _, m := range regexp.MustCompile(`(?m) msg=("[^"]*"|\S+)`).FindAllStringSubmatch(l.String(), -1) {
		out = append(out, strings.Trim(m[1], `"`))
	}
	slices.Sort(out)
	return out
}

// TestSteadyErrorIsLoggedOnce: an unreachable API server, an invalid cluster.yaml, a template
// that keepalived refuses and a missing state directory, over many iterations of the loops:
// each is logged once when it begins, and once when it ends.
func TestSteadyErrorIsLoggedOnce(t *testing.T) {
	testkit.Live(t)
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		testkit.WriteFile(t, path, []byte(text))
	}
	run := filepath.Join(root, v1alpha1.RunDir)
	dir, err := state.Open(run)
	testkit.Must(t, err)
	defer dir.Close()
	// No API server runs, and no other node is known that might have one: no packet leaves
	// loopback, where no program listens on that port.
	good := strings.Replace(string(read(t, "every-pool"+v1alpha1.ClusterConfigPath)), "api: 6443", "api: 1", 1)
	if !strings.Contains(good, "api: 1\n") || strings.Contains(good, "peers:") {
		t.Fatal("not the ports and peers of this test")
	}
	write(v1alpha1.ClusterConfigPath, good)
	write(v1alpha1.KeepalivedTemplate, "frobnicate\n")
	ca, err := authority.New("kubelets")
	testkit.Must(t, err)
	kubeconfig := daemon.NodeKubeconfig(t, filepath.Join(root, kubeletDir), ca, "cp-1", "api-int.demo.example.com:6443")

	var out log
	logger := slog.New(slog.NewTextHandler(&out, nil))
	source := &facts.Source{Name: "cp-1", Role: v1alpha1.RoleMaster, ClusterConfig: filepath.Join(root, v1alpha1.ClusterConfigPath), Log: logger}
	source.Nodes = facts.NewWatched(nodes.Options{Node: "cp-1", Role: v1alpha1.RoleMaster, Kubeconfig: kubeconfig, Log: logger})
	j := &Job{Root: root, Source: source, State: dir, Program: "keepalived", Log: logger}
	testkit.Must(t, j.prepare(t.Context()))
	defer j.checks.Stop()
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { source.Nodes.Run(ctx) })
	turn := func(times int) {
		t.Helper()
		for range times {
			j.apply(ctx)
			j.publish()
		}
	}
	expect := func(when string, want ...string) {
		t.Helper()
		slices.Sort(want)
		testkit.Await(t, when, func() bool { return len(out.messages()) >= len(want) })
		turn(20)
		if got := out.messages(); !slices.Equal(got, want) {
			t.Fatalf("%s: logged\n%s\nwant\n%s\n\n%s", when, strings.Join(got, "\n"), strings.Join(want, "\n"), out.String())
		}
	}
	turn(1)
	lines := []string{
		"VIPs left out",
		"configuration not applied: the last valid one stays in use",
		"check fails", "check fails", "check fails", "check fails", // HAProxy, its API servers, API, machine config server
		"API server does not answer",
		"no API server answers: the last known state stays in use",
	}
	expect("at first", lines...)

	write(v1alpha1.ClusterConfigPath, "spec: [")
	turn(1)
	lines = append(lines, "cluster.yaml invalid: the last valid one stays in use")
	expect("with a wrong cluster.yaml", lines...)

	// A path that is not a directory and cannot become one. Both are swapped at once, here and
	// back later: the checks read it meanwhile, and a moment without either would be another
	// error.
	write("aside", "")
	exchange := func() {
		t.Helper()
		testkit.Must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(root, "aside"), unix.AT_FDCWD, run, unix.RENAME_EXCHANGE))
	}
	exchange()
	s := j.publisher.last.Load()
	turn(1)
	lines = append(lines, "cannot publish the state of keepalived", "cannot write track files: priorities stay unchanged",
		"cannot limit neighbour queues: dead peers may delay advertisements to living ones")
	expect("without the state directory", lines...)
	if now := j.publisher.last.Load(); now == s {
		t.Error("the job does not turn: this proves nothing")
	}

	exchange()
	write(v1alpha1.ClusterConfigPath, good)
	write(v1alpha1.KeepalivedTemplate, keepalived.Template)
	turn(1)
	lines = append(lines, "cluster.yaml valid again", "configuration applied", "state published again", "track files written again",
		"neighbour queues limited again")
	expect("when all is well", lines...)
}
