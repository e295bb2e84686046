package keepalived

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/agent/daemon"
	"github.com/vipgen/vipgen/agent/supervise"
)

// Process ID files, and what keepalived writes them for at SIGUSR1: its state.
const (
	pidDir   = "/run/keepalived"
	mainPID  = pidDir + "/keepalived.pid"
	vrrpPID  = pidDir + "/vrrp.pid"
	dumpFile = "/tmp/keepalived.data"
)

// logLimit is several times what keepalived logs when it starts or takes VIPs. It logs
// each packet that it rejects, and a host that forges a peer's address gets by the guard.
var logLimit = supervise.LogLimit{Rate: 4 << 10, Burst: 48 << 10}

// child is keepalived, the child process of the agent, with the scheduling of its worker and its own view of VIPs.
type child struct {
	*daemon.Daemon
	scheduling scheduling
	dump       dump
}

// newDaemon prepares keepalived, with all that it reads and writes below root.
// before runs before each of its starts, after when it has ended though it was wanted.
func newDaemon(ctx context.Context, program, root, conf string, before, after func(context.Context) error, log *slog.Logger) *child {
	below := func(path string) string { return filepath.Join(root, path) }
	d := &daemon.Daemon{Conf: conf, Check: Check(program)}
	// Without respawning: it would start its worker again behind the agent's
	// back, with the VIPs of the one that died still on the interfaces.
	args := []string{
		"--dont-fork", "--dont-respawn", "--vrrp", "--log-console", "--no-syslog", "--log-detail",
		"--use-file", conf, "--pid", below(mainPID), "--vrrp_pid", below(vrrpPID),
	}
	if knows(ctx, program, noBFD) {
		args = append(args, noBFD)
	}
	d.Process.Command = supervise.Command{Path: program, Args: args, Log: logLimit}
	d.Process.Log, d.Process.After = log, after
	d.Process.Before = func(ctx context.Context) error {
		// It would take the process IDs of an earlier run for others of its kind,
		// and others would take what that saw for what this one sees.
		return errors.Join(os.MkdirAll(below(pidDir), 0o755), remove(below(mainPID)), remove(below(vrrpPID)), remove(below(dumpFile)), before(ctx))
	}
	d.Reload = func(ctx context.Context) error { return reload(ctx, &d.Process, below(vrrpPID)) }
	return &child{Daemon: d, scheduling: scheduling{file: below(vrrpPID), log: log}, dump: dump{path: below(dumpFile)}}
}

// noBFD keeps keepalived 2.3 from creating /run/bfd.pid, which it does even with --vrrp and
// without any BFD instance: the pod's root is read-only, and it takes the failure for
// another keepalived that runs.
const noBFD = "--no_bfd"

// knows reports whether a program's help names an option. keepalived has those of BFD only where
// it was built with it, and ends at an option that it does not know. Of one that cannot
// run, its start says why.
func knows(ctx context.Context, program, option string) bool {
	help, _ := supervise.Output(ctx, program, "--help")
	return slices.Contains(strings.Fields(string(help)), option)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// startTime is many times what keepalived takes from its start until its worker can be
// told something.
const startTime = 5 * time.Second

// reload makes keepalived read its configuration. One that is starting may have read it
// already, and SIGHUP would end it, or be lost, before its worker has written its process
// ID to the file registered (hard case 42): reload waits for that.
func reload(ctx context.Context, p *supervise.Supervisor, registered string) error {
	pid := p.PID()
	for deadline := time.Now().Add(startTime); pid != 0 && p.PID() == pid; {
		if _, err := os.Stat(registered); err == nil {
			return p.Signal(syscall.SIGHUP)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("keepalived has not started within %v", startTime)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return supervise.ErrNotRunning
}
