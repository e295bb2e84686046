package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// BenchmarkProcess runs the built program on one cluster, from start to exit,
// and reports the wall time and the peak memory of the whole process.
func BenchmarkProcess(b *testing.B) {
	program := filepath.Join(b.TempDir(), "vipgen")
	build := exec.Command("go", "build", "-trimpath", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"version"}, {"render", "../../examples/baremetal/install-config.yaml"}} {
		b.Run(args[0], func(b *testing.B) {
			var peak int64
			for b.Loop() {
				c := exec.Command(program, args...)
				c.Stdout = io.Discard
				if err := c.Run(); err != nil {
					b.Fatal(err)
				}
				peak = max(peak, c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
			}
			b.ReportMetric(float64(peak)/1024, "MiB-peak")
			b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/process")
		})
	}
}
