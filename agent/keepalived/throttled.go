package keepalived

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// throttled tracks how long the kernel has throttled this container, by its control
// group.
type throttled struct {
	total time.Duration
	known bool
}

// cpuStats locates the kernel's statistics in control groups v2 and v1, with the unit of
// the number (cgroup-v2.rst and sched-bwc.rst of the kernel's documentation).
var cpuStats = []struct {
	path, key string
	unit      time.Duration
}{
	{"/sys/fs/cgroup/cpu.stat", "throttled_usec ", time.Microsecond},
	{"/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", time.Nanosecond},
}

// poll returns the throttled time since the last poll.
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

// statistic returns the number after key at the start of a line.
func statistic(data []byte, key string) (int64, bool) {
	for line := range bytes.Lines(data) {
		if rest, found := bytes.CutPrefix(line, []byte(key)); found {
			n, err := strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
