package main

import (
	"runtime"
	"runtime/debug"

	"github.com/vipgen/vipgen/internal/ticker"
)

// The agent has little to do, and seldom two things at once. What Go does for
// programs that are to be fast on many cores costs it more than its own work.
const (
	// maxProcs is how many goroutines run at the same time. With more, each of
	// the few that wake up several times a second wakes up another thread as
	// well, to look for work that is not there.
	maxProcs = 1
	// gcPercent is how much garbage there may be for what is in use. There is no
	// limit of the memory as a whole: where more than that is in use, a program
	// is kept busy with looking for garbage.
	gcPercent = 50
)

func frugal() {
	runtime.GOMAXPROCS(maxProcs)
	debug.SetGCPercent(gcPercent)
	_ = ticker.Precise() // what is left is right, and takes more of a core
}
