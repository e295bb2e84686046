package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testkit"
)

// memory is the resident memory of a process, in KiB. Pages that are not anonymous belong to
// files, and are shared by all processes of a program.
type memory struct{ rss, anonymous, peak int }

func memoryOf(b *testing.B, pid int) (m memory) {
	b.Helper()
	fields := map[string]*int{"Rss:": &m.rss, "Anonymous:": &m.anonymous, "VmHWM:": &m.peak}
	for _, file := range []string{"smaps_rollup", "status"} {
		data := testkit.ReadFile(b, fmt.Sprintf("/proc/%d/%s", pid, file))
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 1 && fields[f[0]] != nil {
				n, err := strconv.Atoi(f[1])
				testkit.Must(b, err)
				*fields[f[0]] = n
			}
		}
	}
	return m
}

// cpuOf returns the CPU time of a process with all its threads, without its children, since its
// start: clock_getcpuclockid(3).
func cpuOf(b *testing.B, pid int) time.Duration {
	b.Helper()
	const scheduler = 2 // CPUCLOCK_SCHED, of a process
	var t unix.Timespec
	testkit.Must(b, unix.ClockGettime(int32(^pid<<3|scheduler), &t))
	return time.Duration(t.Nano())
}

// command returns the name of the program that a process runs; empty if it ended.
func command(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return string(bytes.TrimSpace(data))
}

// runs reports whether a process has a child with a word on its command line.
func runs(pid int, program, word string) bool {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		children, _ := os.ReadFile(l)
		for _, child := range strings.Fields(string(children)) {
			line, _ := os.ReadFile("/proc/" + child + "/cmdline")
			id, _ := strconv.Atoi(child)
			if command(id) == program && bytes.Contains(line, []byte(word)) {
				return true
			}
		}
	}
	return false
}
