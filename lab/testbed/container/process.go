package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is a process as seen from this machine.
type Process struct {
	PID  int
	Name string // as the kernel reports it, at most 15 bytes
	ids  []string
}

// inHost returns the process ID in the PID namespace of the host with the given first process;
// empty if the process is not in a container of that host.
func (p Process) inHost(init int) string {
	if len(p.ids) != 3 || p.ids[2] != "1" { // this machine, the host, the container
		return ""
	}
	if namespace(p.PID, "uts") != namespace(init, "uts") {
		return ""
	}
	return p.ids[1]
}

// processes returns all processes of this machine, sorted by process ID.
func processes() []Process {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var out []Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(dir + "/status")
		if err != nil {
			continue // the process has ended
		}
		p := Process{PID: pid}
		for line := range strings.Lines(string(text)) {
			if v, ok := strings.CutPrefix(line, "Name:\t"); ok {
				p.Name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "NSpid:"); ok {
				p.ids = strings.Fields(v)
			}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Process) int { return a.PID - b.PID })
	return out
}

// namespace returns a process's namespace of a kind; empty if it has ended.
func namespace(pid int, kind string) string {
	link, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	return link
}
