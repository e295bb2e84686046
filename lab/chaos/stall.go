package chaos

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// watchdogEvery is how often it is looked whether this machine has time.
	watchdogEvery = 10 * time.Millisecond
	// lateFrom is what counts as late: more than a scheduler's turn or two.
	lateFrom = 20 * time.Millisecond
)

// watchdog reports times by which it was itself late, until ctx ends. Agents and
// daemons that run beside it had to wait as well then.
func watchdog(ctx context.Context, since time.Time, late func(stall)) {
	tick := time.NewTimer(watchdogEvery)
	defer tick.Stop()
	for due := time.Now().Add(watchdogEvery); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if by := now.Sub(due); by >= lateFrom {
			late(stall{At: now.Sub(since), Late: by})
		}
		due = now.Add(watchdogEvery)
		tick.Reset(watchdogEvery)
	}
}

// roomEvery is how often it is looked whether this machine has room for what watches
// files: agents need several instances of inotify each, and there is a limit to those
// of a user.
const roomEvery = time.Second

// room calls full when there is none left, as while other labs run, until ctx ends.
// What agents cannot do then is no fault of theirs.
func room(ctx context.Context, full func(error)) {
	for sleep(ctx, roomEvery) {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			full(fmt.Errorf("this machine has no inotify instance left, of which a lab takes many: end what else takes them, or raise fs.inotify.max_user_instances: %w", err))
			return
		}
		unix.Close(fd)
	}
}
