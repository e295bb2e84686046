package keepalived

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/internal/events"
)

// late counts that the watch of the node ran later than it was to, and records for how long
// the kernel has kept the container from the cores since it was looked last.
func (j *Job) late(by time.Duration) {
	if by >= events.LateFrom {
		j.watching.lateBy.Add(int64(by))
	}
	if by := j.watching.throttled.look(); by >= events.LateFrom {
		j.ring.Note(events.Event{Kind: events.Throttled, For: events.MillisOf(by)})
	}
}

// throttled is how long the kernel has kept the processes of this container from the cores,
// since their control group was made, as they had used up their share.
type throttled struct {
	total time.Duration
	known bool
}

// cpuStats are where the kernel says so, in version 2 of control groups and in version 1,
// by the unit of the number (cgroup-v2.rst and sched-bwc.rst of the kernel's documentation).
var cpuStats = []struct {
	path, key string
	unit      time.Duration
}{
	{"/sys/fs/cgroup/cpu.stat", "throttled_usec ", time.Microsecond},
	{"/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", time.Nanosecond},
}

// look gives the time since it was looked last.
func (t *throttled) look() time.Duration {
	for _, s := range cpuStats {
		data, err := os.ReadFile(s.path)
		if err != nil {
			continue
		}
		if total, ok := statistic(data, s.key); ok {
			before, known := t.total, t.known
			t.total, t.known = time.Duration(total)*s.unit, true
			if known {
				return t.total - before
			}
			return 0
		}
	}
	return 0
}

// statistic reads a line of numbers by name.
func statistic(data []byte, key string) (int64, bool) {
	for line := range bytes.Lines(data) {
		if rest, found := bytes.CutPrefix(line, []byte(key)); found {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
