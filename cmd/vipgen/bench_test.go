package main

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// turns is the number of runs of each program, interleaved, so that other load on the machine
// slows all of them.
const turns = 25

// BenchmarkStart runs built programs from start to exit, and reports the median of their
// wall times as multiples: `version` of a program that prints a line, and a render of a
// cluster of what Butane takes for one of its pools.
func BenchmarkStart(b *testing.B) {
	const cluster = "../../examples/baremetal/install-config.yaml"
	dir, program := b.TempDir(), testkit.Vipgen(b)
	hello, butane := filepath.Join(dir, "hello"), filepath.Join(dir, "butane.program")
	source := filepath.Join(dir, "hello.go")
	testkit.WriteFile(b, source, []byte("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n"))
	for _, line := range [][]string{
		{"go", "build", "-ldflags", "-s -w", "-o", hello, source},
		{"go", "-C", "../../internal/tools/butane", "build", "-ldflags", "-s -w", "-o", butane, "tool"},
		{program, "render", cluster, "--format", "butane", "--dir", dir},
	} {
		testkit.Run(b, exec.Command(line[0], line[1:]...))
	}
	lines := map[string][]string{
		"hello":   {hello},
		"version": {program, "version"},
		"butane":  {butane, filepath.Join(dir, "butane", "master.bu")},
		"render":  {program, "render", cluster},
	}
	took, peak := map[string][]time.Duration{}, int64(0)
	for b.Loop() {
		for range turns {
			for _, name := range slices.Sorted(maps.Keys(lines)) {
				c := exec.Command(lines[name][0], lines[name][1:]...)
				c.Stdout, c.Stderr = io.Discard, os.Stderr
				began := time.Now()
				testkit.Must(testkit.In(b, name), c.Run())
				took[name] = append(took[name], time.Since(began))
				if name == "render" {
					peak = max(peak, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
				}
			}
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return took[name][len(took[name])/2].Seconds()
	}
	b.ReportMetric(median("version")/median("hello"), "version/hello")
	b.ReportMetric(median("render")/median("butane"), "render/butane")
	b.ReportMetric(1000*median("render"), "ms/render")
	b.ReportMetric(float64(peak)/1024, "MiB-peak")
}
