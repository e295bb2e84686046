package chaos

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// watchdogEvery is the interval in which the watchdog measures its own delay.
	watchdogEvery = 10 * time.Millisecond
	// lateFrom is the smallest delay that counts: more than one or two scheduler time slices.
	lateFrom = 20 * time.Millisecond
	// stallWindow is how long before a history a delay can have begun that it shows the effects of, such
	// as BGP sessions that are not open again.
	stallWindow = 2 * session
)

// watchdog reports its own delays until ctx ends. Agents and daemons on this machine had to wait as
// well then.
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

// roomEvery is the interval of checks for free inotify instances: agents need several each, and the
// number for a user is limited.
const roomEvery = time.Second

// room calls full when no inotify instance is left, as while other labs run, until ctx ends. Agents
// are not to blame then.
func room(ctx context.Context, full func(error)) {
	for sleep(ctx, roomEvery) {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			full(fmt.Errorf("no inotify instance left, and a lab needs many: end other users of inotify, or raise fs.inotify.max_user_instances: %w", err))
			return
		}
		unix.Close(fd)
	}
}
