package firewall

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/internal/testkit"
)

// keeperEnv makes the test binary run a Keeper and nothing else.
const keeperEnv = "VIPGEN_TEST_FIREWALL_KEEPER"

func TestMain(m *testing.M) {
	if os.Getenv(keeperEnv) != "" {
		if err := keeperProcess(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order is a line on the process's standard input for its Keeper.
type order struct {
	Redirect *Redirect
	Serving  *bool
	Ready    *bool
	Leaving  bool // from now on
	Linger   bool // at the end, until the VIPs have gone
}

// report is a line of its standard output: a State.
type report struct {
	VIPs     []netip.Addr
	Serving  bool
	InPlace  bool
	Own      bool
	Restored int
	Err      string
	Leftover string
}

// keeperProcess runs a Keeper until SIGTERM. It fails if goroutines are left.
func keeperProcess() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	redirects, serving := make(chan Redirect), make(chan bool)
	var leaving, ready, linger atomic.Bool
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			var o order
			if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
				panic(err)
			}
			if o.Redirect != nil {
				redirects <- *o.Redirect
			}
			if o.Leaving {
				leaving.Store(true)
			}
			if o.Ready != nil {
				ready.Store(*o.Ready)
			}
			if o.Linger {
				linger.Store(true)
			}
			if o.Serving != nil {
				serving <- *o.Serving
			}
		}
	}()
	out := json.NewEncoder(os.Stdout)
	keeper := &Keeper{Redirects: redirects, Serving: serving, Notify: func(s State) {
		out.Encode(report{s.Redirect.VIPs, s.Serving, s.InPlace, s.Own, s.Restored, text(s.Err), s.Leftover + text(s.LeftoverErr)})
	}, Leaving: leaving.Load, Ready: ready.Load, Linger: func(r Redirect) {
		if linger.Load() {
			job.AwaitVIPs(r.VIPs, testkit.Patience)
		}
	}}
	before := goleak.IgnoreCurrent()
	return errors.Join(keeper.Run(ctx), goleak.Find(before))
}
