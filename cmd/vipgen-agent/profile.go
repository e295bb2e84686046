//go:build profile

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// init makes SIGUSR1 write a CPU profile of the next ten seconds, and a heap profile, into the
// directory VIPGEN_PROFILES. It is only in the binary that explains the results of `make
// bench-agent`.
func init() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for range asked {
			profile(os.Getenv("VIPGEN_PROFILES"))
		}
	}()
}

func profile(dir string) {
	cpu, err := os.Create(filepath.Join(dir, "cpu"))
	if err != nil {
		panic(err)
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		panic(err)
	}
	time.Sleep(10 * time.Second)
	pprof.StopCPUProfile()
	cpu.Close()
	runtime.GC()
	heap, err := os.Create(filepath.Join(dir, "heap.part"))
	if err != nil {
		panic(err)
	}
	if err := pprof.WriteHeapProfile(heap); err != nil {
		panic(err)
	}
	heap.Close()
	if err := os.Rename(heap.Name(), filepath.Join(dir, "heap")); err != nil {
		panic(err)
	}
}
