package supervise

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	b := Backoff{Min: time.Second, Max: 5 * time.Second, Well: time.Minute}
	for i, tt := range []struct{ ran, want time.Duration }{
		{0, time.Second},
		{0, 2 * time.Second},
		{59 * time.Second, 4 * time.Second},
		{0, 5 * time.Second},
		{0, 5 * time.Second},
		{time.Minute, time.Second},
		{0, 2 * time.Second},
	} {
		if got := b.next(tt.ran); got != tt.want {
			t.Errorf("wait %d, after %v: %v, want %v", i, tt.ran, got, tt.want)
		}
	}
}

func TestSupervisor(t *testing.T) {
	var asked atomic.Int32
	s := &Supervisor{
		Command: Command{Path: "sleep", Args: []string{"1000"}},
		Backoff: Backoff{Min: time.Millisecond},
		Log:     slog.New(slog.DiscardHandler),
		Before: func(context.Context) error {
			if asked.Add(1) == 1 {
				return errors.New("not yet")
			}
			return nil
		},
	}
	if err := s.Signal(syscall.SIGHUP); !errors.Is(err, ErrNotRunning) {
		t.Errorf("signal before the start: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	await(t, "the daemon to start", func() bool { return s.PID() != 0 })
	first := s.PID()
	if err := s.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "a new daemon", func() bool { return s.PID() != 0 && s.PID() != first })
	second := s.PID()
	if got := s.Restarts(); got != 2 {
		t.Errorf("%d restarts, want 2: one that failed, one after a kill", got)
	}
	cancel()
	<-ended
	if !gone(second) || s.PID() != 0 {
		t.Error("the daemon is still there")
	}
}
