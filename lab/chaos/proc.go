package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process of a node or of its containers.
type process struct {
	pid, parent int
	name        string
	zombie      bool
	stopped     bool // by a signal
	age         time.Duration
	files       int // number of open files
}

// processesOf returns the processes of a node whose first process is given, sorted by process ID:
// all in its UTS namespace, and their unreaped children.
func processesOf(init int) (out []process) {
	place := namespace(init)
	if init == 0 || place == "" {
		return nil
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	mine := map[int]bool{}
	var ended []process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		switch where := namespace(pid); where {
		case place:
			if p, ok := readProcess(pid); ok {
				mine[pid] = true
				out = append(out, p)
			}
		case "":
			if p, ok := readProcess(pid); ok && p.zombie {
				ended = append(ended, p)
			}
		}
	}
	for _, p := range ended {
		if mine[p.parent] {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b process) int { return a.pid - b.pid })
	return out
}

// namespace returns the UTS namespace of a process; empty if it has ended.
func namespace(pid int) string {
	link, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", pid))
	return link
}

// readProcess reads a process from /proc; false if it has ended.
func readProcess(pid int) (p process, ok bool) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	text, err := os.ReadFile(dir + "status")
	if err != nil {
		return p, false
	}
	p.pid = pid
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch key {
		case "Name":
			p.name = value
		case "State":
			p.zombie, p.stopped = strings.HasPrefix(value, "Z"), strings.HasPrefix(value, "T")
		case "PPid":
			p.parent, _ = strconv.Atoi(value)
		}
	}
	p.age = age(dir)
	files, _ := os.ReadDir(dir + "fd")
	p.files = len(files)
	return p, true
}

// ticks is USER_HZ, the unit of start times in proc(5), on every architecture that Go supports.
const ticks = 100

// age returns the age of a process; 0 if it has ended.
func age(dir string) time.Duration {
	stat, err := os.ReadFile(dir + "stat")
	if err != nil {
		return 0
	}
	// The second field is the name in parentheses, which may contain any character; the start time
	// is field 22.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return 0
	}
	start, err := strconv.ParseInt(fields[19], 10, 64)
	var now unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano()) - time.Duration(start)*second/ticks
}
