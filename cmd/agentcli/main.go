package agentcli

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/vipgen/vipgen/internal/ticker"
)

// The agent has little to do, and seldom two things at once. Go's defaults for fast programs on
// many cores would cost it more than its own work.
const (
	// maxProcs is the number of goroutines that run at the same time. With more, each of the
	// few that wake up several times a second wakes up another thread as well, which finds no
	// work.
	maxProcs = 1
	// gcPercent is the share of garbage in the memory in use. There is no limit of the memory
	// as a whole: above it, a program would collect garbage all the time.
	gcPercent = 50
)

func frugal() {
	runtime.GOMAXPROCS(maxProcs)
	debug.SetGCPercent(gcPercent)
	_ = ticker.Precise() // the default works too, at a higher cost
}

// Main runs the command line of the process, and exits.
func Main() {
	frugal()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
