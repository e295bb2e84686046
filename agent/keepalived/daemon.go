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

// Process ID files, and the file to which keepalived dumps its state at SIGUSR1.
const (
	pidDir   = "/run/keepalived"
	mainPID  = pidDir + "/keepalived.pid"
	vrrpPID  = pidDir + "/vrrp.pid"
	dumpFile = "/tmp/keepalived.data"
)

// logLimit is several times what keepalived logs when it starts or acquires VIPs. It
// bounds the rest: keepalived logs each packet that it rejects, and a host that forges a
// peer's address passes the guard.
var logLimit = supervise.LogLimit{Rate: 4 << 10, Burst: 48 << 10}

// child is the keepalived process, with the scheduling of its worker and its own view of
// VIPs.
type child struct {
	*daemon.Daemon
	scheduling scheduling
	dump       dump
}

// newDaemon prepares keepalived with all its files below root. before runs before each
// start, after when it ended although it was wanted.
func newDaemon(ctx context.Context, program, root, conf string, before, after func(context.Context) error, log *slog.Logger) *child {
	below := func(path string) string { return filepath.Join(root, path) }
	d := &daemon.Daemon{Conf: conf, Check: Check(program)}
	// No respawning: keepalived would restart its worker without the agent's knowledge,
	// while the VIPs of the dead worker are still on the interfaces.
	args := []string{
		"--dont-fork", "--dont-respawn", "--vrrp", "--log-console", "--no-syslog", "--log-detail",
		"--use-file", conf, "--pid", below(mainPID), "--vrrp_pid", below(vrrpPID),
	}
	if hasOption(ctx, program, noBFD) {
		args = append(args, noBFD)
	}
	d.Process.Command = supervise.Command{Path: program, Args: args, Log: logLimit}
	d.Process.Log, d.Process.After = log, after
	d.Process.Before = func(ctx context.Context) error {
		// keepalived would take stale process IDs for running processes of its own, and
		// probes would take a stale dump for the current state.
		return errors.Join(os.MkdirAll(below(pidDir), 0o755), remove(below(mainPID)), remove(below(vrrpPID)), remove(below(dumpFile)), before(ctx))
	}
	d.Reload = func(ctx context.Context) error { return reload(ctx, &d.Process, below(vrrpPID)) }
	return &child{Daemon: d, scheduling: scheduling{file: below(vrrpPID), log: log}, dump: dump{path: below(dumpFile)}}
}

// noBFD prevents keepalived 2.3 from creating /run/bfd.pid, which it does even with
// --vrrp and no BFD instance: the pod's root is read-only, and keepalived takes the
// failure for another running keepalived.
const noBFD = "--no_bfd"

// hasOption reports whether a program's help lists an option. keepalived has the BFD options
// only if built with BFD, and exits on unknown options. If it cannot run at all, its
// start reports why.
func hasOption(ctx context.Context, program, option string) bool {
	help, _ := supervise.Output(ctx, program, "--help")
	return slices.Contains(strings.Fields(string(help)), option)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// startTime is many times what keepalived takes from its start until its worker handles
// signals.
const startTime = 5 * time.Second

// reload makes keepalived read its configuration. While keepalived starts, SIGHUP would
// kill it or be lost until its worker has written its process ID to registered (hard case
// 42): reload waits for that.
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
