package record

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// throttled holds for how long the kernel has kept the processes of this container from the
// cores since their control group was made, as they had used up their share.
type throttled struct {
	total time.Duration
	known bool
}

// cpuStats are the kernel's statistics, in version 2 of control groups and in version 1,
// by the unit of the number (cgroup-v2.rst and sched-bwc.rst of the kernel's documentation).
var cpuStats = []struct {
	path, key string
	unit      time.Duration
}{
	{"/sys/fs/cgroup/cpu.stat", "throttled_usec ", time.Microsecond},
	{"/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", time.Nanosecond},
}

// poll returns the time since the last poll.
func (t *throttled) poll() time.Duration {
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
