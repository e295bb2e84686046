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

// children are those that this package started and waits for. The lock is held
// while one starts, so that the reaper sees none before it is listed here.
var children = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// own starts a command as a child that the reaper leaves alone.
func own(cmd *exec.Cmd) error {
	children.Lock()
	defer children.Unlock()
	err := cmd.Start()
	if err == nil {
		children.pids[cmd.Process.Pid] = true
	}
	return err
}

// disown forgets a child after its exit status was read.
func disown(cmd *exec.Cmd) {
	children.Lock()
	defer children.Unlock()
	delete(children.pids, cmd.Process.Pid)
}

// lookAgain is how often the reaper looks although no signal came: a process
// may end while another of the same process ID is still listed as a child.
const lookAgain = time.Minute

// Reap takes in, until ctx ends, what daemons leave behind: processes whose
// parent is gone become children of process 1, which the agent is in its
// container, and stay as zombies unless it waits for them. It leaves alone the
// children that this package started, so every program that the agent runs has
// to be run through it.
func Reap(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	tick := time.NewTicker(lookAgain)
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
		return // tried again at the next signal
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

// processState reads /proc/PID/stat: process ID, name in parentheses (which may
// hold any character), state, parent (proc_pid_stat(5)). state is empty for a
// process that is not there.
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
