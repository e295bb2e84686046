package liveness

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAsk(t *testing.T) {
	// Longer than a socket's path may be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	testkit.Must(t, os.Mkdir(dir, 0o755))
	expect := func(want string) {
		t.Helper()
		got := ""
		if err := Ask(t.Context(), dir, "job"); err != nil {
			got = err.Error()
		}
		testkit.Equal(t, want, got)
	}
	expect("the job job does not run")

	var stuck atomic.Pointer[error]
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Answer(ctx, dir, func() error {
				if err := stuck.Load(); err != nil {
					return *err
				}
				return nil
			}, slog.New(slog.NewTextHandler(t.Output(), nil)))
		}()
		return func() {
			cancel()
			<-ended
		}
	}
	running := func() {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); Ask(t.Context(), dir, "job") != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no answer")
			}
		}
	}
	stop := start()
	running()
	err := errors.New("the loop is stuck")
	stuck.Store(&err)
	expect("the loop is stuck")
	stuck.Store(nil)
	expect("")
	stop()
	expect("the job job does not run")

	// A listener takes over while the earlier one still ends.
	stop = start()
	running()
	before, _ := os.Stat(filepath.Join(dir, socket))
	defer start()()
	for after := before; os.SameFile(before, after); {
		after, _ = os.Stat(filepath.Join(dir, socket))
	}
	stop()
	running()
	expect("")
}

// A hanging process accepts connections as long as the kernel has room.
func TestAskHangs(t *testing.T) {
	dir := t.TempDir()
	l, err := listen(dir, socket)
	testkit.Must(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	answer := make(chan error)
	go func() { answer <- Ask(ctx, dir, "job") }()
	asked, err := l.Accept() // the test accepts to learn of the query; the job does not answer
	testkit.Must(t, err)
	defer asked.Close()
	cancel(errors.New("waited for long"))
	if err := <-answer; err == nil || err.Error() != "the job job does not answer: waited for long" {
		t.Error(err)
	}
}
