package main

import (
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// BenchmarkProcess runs the built program on one cluster, from start to exit,
// and reports the wall time and the peak memory of the whole process.
func BenchmarkProcess(b *testing.B) {
	program := testkit.Vipgen(b)
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
