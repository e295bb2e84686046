// Package urgent has a process run as soon as it wakes, whatever else keeps the
// cores of its machine busy.
//
// A nice value cannot do that for a container: it counts among the processes of one
// control group, and kubelet gives each container a group, whose weight is what it
// requests. With a request of 50 thousandths of a core a process that should run
// every 40 ms was up to 300 ms late on a busy machine, whatever its nice value.
package urgent

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Way is how a process gets its time on the cores, as sched(7) calls it.
type Way string

// Ways, the best one first.
const (
	// Deadline is SCHED_DEADLINE: ahead of all others, for a bounded share of a core.
	// It needs a process that may run on every core.
	Deadline Way = "SCHED_DEADLINE"
	// RoundRobin is SCHED_RR with the lowest priority: ahead of everything that is not
	// real-time. Kernels with groups of real-time processes (CONFIG_RT_GROUP_SCHED)
	// refuse it in containers.
	RoundRobin Way = "SCHED_RR"
	// Ordinary is SCHED_OTHER.
	Ordinary Way = "SCHED_OTHER"
)

// What a process has under SCHED_DEADLINE: that much time in each period, and more
// while no other such process wants it (SCHED_FLAG_RECLAIM).
const (
	runtime = time.Millisecond
	period  = 10 * time.Millisecond
)

// Raise gives a process of one thread the best way that the kernel grants, and
// returns it. With Ordinary, the error says what became of the others. It needs
// CAP_SYS_NICE. The processes that it starts are ordinary ones.
func Raise(pid int) (Way, error) {
	var refused []error
	for _, t := range []struct {
		way  Way
		attr unix.SchedAttr
	}{
		{Deadline, unix.SchedAttr{
			Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RESET_ON_FORK | unix.SCHED_FLAG_RECLAIM,
			Runtime: uint64(runtime), Deadline: uint64(period), Period: uint64(period),
		}},
		{RoundRobin, unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}},
	} {
		err := unix.SchedSetAttr(pid, &t.attr, 0)
		if err == nil {
			return t.way, nil
		}
		if errors.Is(err, unix.ESRCH) {
			return "", err
		}
		refused = append(refused, fmt.Errorf("%s: %w", t.way, err))
	}
	return Ordinary, errors.Join(refused...)
}
