package keepalived

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	runner "github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// keepalived is killed repeatedly and leaves its VIP behind: the agent removes it each time.
// That it does so before the next start is tested in agent/supervise.
func TestHardCase38CrashLoop(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	c.controlPlane(2)
	n := c.nodes[c.holder(c.all()...)]
	last := 0
	for range 4 {
		var s state.Keepalived
		var worker []int
		testkit.Await(t, "keepalived to run", func() bool {
			s, _ = n.state()
			worker = workers(t, s.PID)
			return s.PID != 0 && s.PID != last && len(worker) > 0
		})
		last = s.PID
		for _, pid := range append(worker, s.PID) {
			syscall.Kill(pid, syscall.SIGSTOP) // it removes nothing itself
		}
		if len(n.linksWith(apiVIP)) == 0 {
			// It may have been adding the VIP when it was stopped.
			if err := n.AddAddress("eth0", netip.PrefixFrom(apiVIP, 32)); err != nil && len(n.linksWith(apiVIP)) == 0 {
				t.Fatal(err)
			}
		}
		for _, pid := range append(worker, s.PID) {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		testkit.Await(t, "the VIP to go", func() bool { return len(n.linksWith(apiVIP)) == 0 })
	}
}

// A configuration that changes while keepalived starts is in force afterwards, whenever it
// changes, and keepalived is not restarted for it.
func TestHardCase42ReloadWhileItStarts(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.168.111.11/24")
	root := t.TempDir()
	conf, program := filepath.Join(root, "keepalived.conf"), filepath.Join(root, "keepalived")
	script := "#!/bin/sh\nexec ip netns exec " + node.Namespace() + " " + testkit.Program(t, "keepalived") + " \"$@\"\n"
	testkit.Must(t, process.WriteProgram(program, []byte(script)))
	nothing := func(context.Context) error { return nil }
	for i := range 12 {
		d := newDaemon(t.Context(), program, root, conf, nothing, nothing, slog.New(slog.DiscardHandler))
		d.Check = func(context.Context, string) error { return nil } // takes time, in which keepalived would start
		apply := func(router int) {
			t.Helper()
			text := "vrrp_instance V {\n interface eth0\n virtual_router_id " + strconv.Itoa(router) + "\n priority 100\n virtual_ipaddress { 192.168.111.5 }\n}\n"
			if changed, err := d.Apply(t.Context(), runner.Target{Conf: []byte(text)}); !changed || err != nil {
				t.Fatalf("changed: %t, %v", changed, err)
			}
		}
		apply(1)
		if i%2 == 0 { // at once, or after the duration of a reload
			testkit.Await(t, "a process", func() bool { return d.Process.PID() != 0 })
		}
		apply(2)
		before := d.Process.PID()
		testkit.Await(t, "keepalived to run the second configuration", func() bool {
			pid := d.Process.PID()
			if d.Process.Restarts() > 0 {
				t.Fatalf("try %d: keepalived was ended, process %d", i, before)
			}
			if _, err := os.Stat(filepath.Join(root, vrrpPID)); err != nil || pid == 0 {
				return false
			}
			os.Remove(dumpFile)
			syscall.Kill(pid, syscall.SIGUSR1)
			data, err := os.ReadFile(dumpFile)
			return err == nil && strings.Contains(string(data), "Virtual Router ID = 2")
		})
		d.Close()
	}
}
