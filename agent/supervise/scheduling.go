package supervise

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Scheduling is the policy by which a process gets its time on the cores, as sched(7)
// calls it.
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

// What a process has under SCHED_DEADLINE: that much time in each period, and more
// while no other such process wants it (SCHED_FLAG_RECLAIM).
const (
	deadlineRuntime = time.Millisecond
	deadlinePeriod  = 10 * time.Millisecond
)

// RaiseScheduling has a process of one thread run as soon as it wakes, whatever else keeps
// the cores of its machine busy: it gives it the best policy that the kernel grants, and
// returns that. With Ordinary, the error says what became of the others. It needs
// CAP_SYS_NICE. The processes that it starts are ordinary ones.
//
// A nice value cannot do that for a container: it counts among the processes of one
// control group, and kubelet gives each container a group, whose weight is what it
// requests. With a request of 50 thousandths of a core a process that should run
// every 40 ms was up to 300 ms late on a busy machine, whatever its nice value.
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
		{RoundRobin, unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}},
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
