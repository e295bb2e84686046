package supervise

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// children are the processes started by this package. The lock is held during a start, so
// that the reaper sees no child before it is listed.
var children = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// startChild starts a command as a child that the reaper ignores.
func startChild(cmd *exec.Cmd) error {
	children.Lock()
	defer children.Unlock()
	err := cmd.Start()
	if err == nil {
		children.pids[cmd.Process.Pid] = true
	}
	return err
}

// forgetChild removes a child after its exit status was read.
func forgetChild(cmd *exec.Cmd) {
	children.Lock()
	defer children.Unlock()
	delete(children.pids, cmd.Process.Pid)
}

// reapEvery is the interval of reaping without a signal: a process may end while a listed
// child has the same process ID.
const reapEvery = time.Minute

// Reap reaps orphans of daemons until ctx ends: they become children of process 1, the
// agent in its container, and stay zombies unless it waits for them. It ignores the
// children started by this package, so the agent must run every program through it.
func Reap(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	tick := time.NewTicker(reapEvery)
	defer tick.Stop()
	for {
		reapOnce()
		select {
		case <-ctx.Done():
			return
		case <-ended:
		case <-tick.C:
		}
	}
}

func reapOnce() {
	children.Lock()
	defer children.Unlock()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // the next signal tries again
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && !children.pids[pid] && isZombieOf(pid, os.Getpid()) {
			syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

func isZombieOf(pid, parent int) bool {
	state, p := processState(pid)
	return state == "Z" && p == parent
}

// processState returns the state and parent in /proc/PID/stat: process ID, name in
// parentheses (which may contain any character), state, parent (proc_pid_stat(5)). state
// is empty if there is no such process.
func processState(pid int) (state string, parent int) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	return string(fields[0]), parent
}
