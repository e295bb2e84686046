package supervise

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestBackoff(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 5 * time.Second, Well: time.Minute}
	for i, tt := range []struct{ ran, want time.Duration }{
		{0, time.Second}, {0, 2 * time.Second}, {59 * time.Second, 4 * time.Second}, {0, 5 * time.Second},
		{0, 5 * time.Second}, {time.Minute, time.Second}, {0, 2 * time.Second},
	} {
		testkit.Equal(testkit.In(t, i, tt.ran), tt.want, b.next(tt.ran))
	}
	at := Backoff{Min: time.Second, Well: time.Minute, AtOnce: true}
	for i, tt := range []struct{ ran, want time.Duration }{
		{time.Minute, 0}, {0, time.Second}, {0, 2 * time.Second}, {time.Minute, 0}, {0, time.Second},
	} {
		testkit.Equal(testkit.In(t, i, tt.ran), tt.want, at.next(tt.ran))
	}
}

// run runs a Supervisor until the returned function is called, which waits for its end.
func run(t *testing.T, s *Supervisor) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

func TestSupervisor(t *testing.T) {
	var asked atomic.Int32
	s := &Supervisor{
		Command: Command{Path: "sleep", Args: []string{"1000"}}, Backoff: Backoff{Min: time.Millisecond}, Log: slog.New(slog.DiscardHandler),
		Before: func(context.Context) error {
			if asked.Add(1) == 1 {
				return errors.New("not yet")
			}
			return nil
		},
	}
	testkit.Is(testkit.In(t, "signal before the start"), s.Signal(syscall.SIGHUP), ErrNotRunning)
	stop := run(t, s)
	testkit.Await(t, "the daemon to start", func() bool { return s.PID() != 0 })
	first := s.PID()
	testkit.Must(t, s.Signal(syscall.SIGKILL))
	testkit.Await(t, "a new daemon", func() bool { return s.PID() != 0 && s.PID() != first })
	second := s.PID()
	testkit.Equal(t, 2, s.Restarts())
	stop()
	if !gone(second) || s.PID() != 0 {
		t.Error("the daemon is still there")
	}
}

// Lines of the daemon become records of the agent's log, except for filtered ones.
func TestLinesAreRecords(t *testing.T) {
	var out testkit.Log
	s := &Supervisor{
		Log: logging.New(&out, "text", slog.LevelInfo),
		Command: Command{Path: "sh", Args: []string{"-c", "echo 'Mon Nov  3 06:22:17 2025: one'; echo two; echo '[WARNING] (17) : three' >&2; exec sleep 1000"},
			Log: LogLimit{Burst: 1 << 10}, Logged: func(line []byte) bool { return string(line) != "two\n" }},
	}
	stop := run(t, s)
	testkit.Await(t, "the last line", func() bool { return strings.Contains(out.String(), "three") })
	stop()
	testkit.Contains(t, out.String(), " level=INFO msg=one daemon=sh\n", " level=WARN msg=three daemon=sh\n")
	testkit.Lacks(t, out.String(), "two", "2025")
}

// A daemon that repeatedly exits in the same way is logged once, and again when it runs well.
func TestEndsAreLoggedOnce(t *testing.T) {
	var out testkit.Log
	var starts atomic.Int32
	s := &Supervisor{
		Backoff: Backoff{Min: time.Millisecond, Max: time.Millisecond, Well: time.Hour}, Log: slog.New(slog.NewTextHandler(&out, nil)),
		Command: Command{Path: "sh", Args: []string{"-c", `test -e "$0" && exec sleep 1000; exit 7`, filepath.Join(t.TempDir(), "well")}},
	}
	s.Before = func(context.Context) error {
		if starts.Add(1) < 20 {
			return nil
		}
		s.Backoff.Well = time.Millisecond
		return os.WriteFile(s.Command.Args[2], nil, 0o644)
	}
	stop := run(t, s)
	testkit.Await(t, "20 starts", func() bool { return starts.Load() == 20 && s.PID() != 0 })
	testkit.Await(t, "it to run well", func() bool { return strings.Contains(out.String(), "daemon runs again") })
	stop()
	for words, want := range map[string]int{"does not run": 1, "daemon runs again": 1, "daemon started": 2} {
		testkit.Equal(testkit.In(t, words, out.String()), want, strings.Count(out.String(), words))
	}
}

// The clean-up after a daemon runs when it exits, before the delay of its next start.
func TestHardCase38AfterTheEnd(t *testing.T) {
	var starts, ends atomic.Int32
	s := &Supervisor{
		Command: Command{Path: "false"}, Log: slog.New(slog.DiscardHandler), Backoff: Backoff{Min: time.Hour},
		Before: func(context.Context) error { starts.Add(1); return nil }, After: func(context.Context) error { ends.Add(1); return nil },
	}
	run(t, s)
	testkit.Await(t, "the end", func() bool { return ends.Load() == 1 })
	testkit.Equal(t, 1, starts.Load())
}
