package supervise

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// roleVariable makes the test binary play an agent.
const roleVariable = "SUPERVISE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "agent":
		agent()
	case "reaper":
		reaper()
	case "raised":
		raised()
	default:
		goleak.VerifyTestMain(m)
	}
}

// agent starts the daemon given by its arguments, prints its process ID and runs until it is
// killed, while its other threads come and go.
func agent() {
	// A file, so that the daemon does not inherit the pipe that the test reads.
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p, err := Start(Command{Path: os.Args[1], Args: os.Args[2:], Stdout: null, Stderr: null})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	churn(50)
	fmt.Println(p.PID())
	select {}
}

// raised raises its threads, starts others, and prints the policies of all.
func raised() {
	err := RaiseThreads()
	churn(5)
	threads, _ := os.ReadDir("/proc/self/task")
	policies := map[Scheduling]int{}
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		policy, _ := scheduling(id)
		policies[policy]++
	}
	fmt.Println(err, len(policies), policies[RoundRobin] > 1)
}

// churn ends n threads: a goroutine that ends while it is locked to its thread
// takes the thread along.
func churn(n int) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() { runtime.LockOSThread() })
	}
	all.Wait()
}

// reaper is an agent as process 1 of a container: it inherits orphans of daemons while it runs
// programs whose exit status it needs.
func reaper() {
	if err := reapWhileRunning(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func reapWhileRunning() error {
	// Children that process 1 would inherit become this process's.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go Reap(ctx)
	var errs [4]error
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = leaveOrphans(ctx) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(testkit.Patience); ; time.Sleep(5 * time.Millisecond) {
		left := zombies(os.Getpid())
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("zombies left: %v", left)
		}
	}
}

// leaveOrphans runs programs that leave another one behind, each in its own session so that it
// outlives the group, and checks the exit status of each.
func leaveOrphans(ctx context.Context) error {
	for i := range 25 {
		_, err := Output(ctx, "sh", "-c", fmt.Sprintf("setsid sleep 0.0%d >&- 2>&- & exit %d", i%5, i))
		if got := exitCode(err); got != i {
			return fmt.Errorf("exit status %d (%v), want %d", got, err, i)
		}
	}
	return nil
}

func zombies(parent int) []string {
	var out []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && isZombieOf(pid, parent) {
			out = append(out, e.Name())
		}
	}
	return out
}

// gone reports whether a process has ended, even if its parent has not waited for it.
func gone(pid int) bool {
	state, _ := processState(pid)
	return state == "" || state == "Z"
}
