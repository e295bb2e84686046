package supervise

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Scheduling is a scheduling policy by its name in sched(7).
type Scheduling string

// Policies, the best one first.
const (
	// Deadline is SCHED_DEADLINE: ahead of all others, for a bounded share of a core.
	// It needs a process that may run on every core.
	Deadline Scheduling = "SCHED_DEADLINE"
	// RoundRobin is SCHED_RR with the lowest priority: ahead of everything that is not
	// real-time. Kernels with groups of real-time processes (CONFIG_RT_GROUP_SCHED)
	// refuse it in containers.
	RoundRobin Scheduling = "SCHED_RR"
	// Ordinary is SCHED_OTHER.
	Ordinary Scheduling = "SCHED_OTHER"
)

// Parameters of SCHED_DEADLINE: this runtime in each period, and more while no other such
// process needs it (SCHED_FLAG_RECLAIM).
const (
	deadlineRuntime = time.Millisecond
	deadlinePeriod  = 10 * time.Millisecond
)

// roundRobin returns the attributes of the lowest priority of SCHED_RR.
func roundRobin(flags uint64) unix.SchedAttr {
	return unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Flags: flags, Priority: 1}
}

// RaiseThreads sets RoundRobin for all threads of this process, and so for those that they
// start, up to one core: for programs with tasks of milliseconds that are not keepalived's. It
// needs CAP_SYS_NICE, and fails where the kernel refuses it.
func RaiseThreads() error {
	runtime.GOMAXPROCS(1)
	attr := roundRobin(0) // inherited by new threads
	for raised := map[string]bool{}; ; {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		before := len(raised)
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || raised[t.Name()] {
				continue
			}
			if err := unix.SchedSetAttr(id, &attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("%s: %w", RoundRobin, err)
			}
			raised[t.Name()] = true
		}
		if len(raised) == before {
			return nil // no thread was started by one that had not been raised
		}
	}
}

// RaiseScheduling sets the best policy that the kernel grants for a single-threaded process,
// so that it runs as soon as it wakes, on a busy machine too, and returns the policy.
// With Ordinary, the error explains the refusals. It needs CAP_SYS_NICE. Children of the
// process are ordinary processes.
//
// A nice value cannot do that in a container: it counts only among the processes of one
// control group, and kubelet gives each container a group weighted by its CPU request.
// With a request of 50m, a process that should run every 40 ms was up to 300 ms late on a
// busy machine, whatever its nice value.
func RaiseScheduling(pid int) (Scheduling, error) {
	var refused []error
	for _, t := range []struct {
		policy Scheduling
		attr   unix.SchedAttr
	}{
		{Deadline, unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RESET_ON_FORK | unix.SCHED_FLAG_RECLAIM,
			Runtime: uint64(deadlineRuntime), Deadline: uint64(deadlinePeriod), Period: uint64(deadlinePeriod),
		}},
		{RoundRobin, roundRobin(unix.SCHED_FLAG_RESET_ON_FORK)},
	} {
		err := unix.SchedSetAttr(pid, &t.attr, 0)
		if err == nil {
			return t.policy, nil
		}
		if errors.Is(err, unix.ESRCH) {
			return "", err
		}
		refused = append(refused, fmt.Errorf("%s: %w", t.policy, err))
	}
	return Ordinary, errors.Join(refused...)
}
