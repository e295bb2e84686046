package bench

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// loopsPerCore is the number of competing processes per core, at ordinary priority.
const loopsPerCore = 2

// saturation keeps all cores of this machine busy for a time, at ordinary priority, with separate
// processes: the client in this process must not wait for its own loops more than for others.
func saturation(ctx context.Context, length time.Duration) error {
	busy, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	loops := make([]*exec.Cmd, loopsPerCore*runtime.NumCPU())
	for i := range loops {
		// timeout(1) ends its loop even if this process is killed.
		loop := exec.CommandContext(busy, "timeout", fmt.Sprint(int(length.Seconds())+1), "sh", "-c", "while :; do :; done")
		loop.Cancel = func() error { return loop.Process.Signal(syscall.SIGTERM) }
		loops[i] = loop
		if err := loops[i].Start(); err != nil {
			cancel()
			for _, started := range loops[:i] {
				_ = started.Wait() // killed
			}
			return fmt.Errorf("keeping a core busy: %w", err)
		}
	}
	for _, loop := range loops {
		_ = loop.Wait() // ended by timeout(1)
	}
	return ctx.Err()
}

// Steadiness is the stability of VRRP with one advertisement interval while all cores are busy.
type Steadiness struct {
	Interval float64 `json:"interval_ms"`
	// Moves is the number of failovers of all VIPs: there was no fault, so all were spurious.
	Moves int `json:"needless_failovers"`
	// Two is the longest time in which two nodes had a VIP.
	Two float64 `json:"split_brain_ms"`
}

// Saturate keeps all cores busy for a time with each of the advertisement intervals, and counts the
// failovers. After an error it returns the results so far.
func Saturate(ctx context.Context, cfg Config, intervals []time.Duration, length time.Duration) (all []Steadiness, err error) {
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	for _, interval := range intervals {
		one, err := steadiness(ctx, &cfg, interval, length)
		if err != nil {
			return all, fmt.Errorf("advertisement interval %v: %w", interval, err)
		}
		cfg.Progress(fmt.Sprintf("%v: %d spurious failovers in %v", interval, one.Moves, length))
		all = append(all, one)
	}
	return all, nil
}

func steadiness(ctx context.Context, cfg *Config, interval, length time.Duration) (out Steadiness, err error) {
	p, err := Custom(interval)
	if err != nil {
		return out, err
	}
	s, err := build(ctx, cfg, p, false)
	if err != nil {
		return out, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	if err := s.settled(ctx); err != nil {
		return out, err
	}
	w, err := watch.Start(watch.Config{Network: s.Network(), Nodes: s.hosts(), VIPs: s.vips()})
	if err != nil {
		return out, err
	}
	failed := saturation(ctx, length)
	timeline, err := w.End()
	if failed != nil {
		return out, failed
	}
	out = Steadiness{Interval: milliseconds(interval), Two: milliseconds(overlap(timeline, 0)), Moves: moves(timeline)}
	return out, err
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
