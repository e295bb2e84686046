package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Paths of the profiled agent and its profiles on the node.
const (
	profiledProgram = "/vipgen/profiled/vipgen-agent"
	profiles        = "/profiles"
)

// explain runs the jobs that missed a target once more, as programs that write profiles, and
// keeps the top entries of memory and CPU time.
func (m *measurement) explain() {
	m.Helper()
	jobs := slices.DeleteFunc(slices.Clone(m.list), func(j *job) bool { return !m.missed[j] })
	if len(jobs) == 0 {
		return
	}
	program := build(m.B, "-tags=profile")
	m.node.Bind(program, profiledProgram)
	for _, j := range jobs {
		j.kill()
		j.startAs(profiledProgram, "VIPGEN_PROFILES="+profiles, "GODEBUG=memprofilerate=16384")
		j.await(j.name+" to have its configuration in place", j.up)
	}
	time.Sleep(settle)
	for _, j := range jobs {
		dir := m.node.Path(profiles)
		testkit.Must(m, os.RemoveAll(dir))
		testkit.Must(m, os.Mkdir(dir, 0o755))
		testkit.Must(m, syscall.Kill(j.pid(), syscall.SIGUSR1))
		heap := filepath.Join(dir, "heap")
		j.await("the profiles of "+j.name, func() bool { _, err := os.Stat(heap); return err == nil })
		m.explained = append(m.explained,
			fmt.Sprintf("%s: time on cores in 10 s, %d nodes\n%s", j.name, large, m.top(program, filepath.Join(dir, "cpu"), "-cum")),
			fmt.Sprintf("%s: memory in use, %d nodes\n%s", j.name, large, m.top(program, heap, "-sample_index=inuse_space")))
	}
}

// top returns the output of pprof, without its header.
func (m *measurement) top(program, profile, how string) string {
	m.Helper()
	out, err := exec.Command("go", "tool", "pprof", "-top", "-nodecount=12", how, program, profile).Output()
	testkit.Must(m, err)
	_, lines, _ := strings.Cut(string(out), "Type:")
	return lines
}
