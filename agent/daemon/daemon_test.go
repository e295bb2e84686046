package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/supervise"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a Daemon whose file, reload and log a test controls.
type bench struct {
	*Daemon
	t       *testing.T
	text    string // desired content of the file
	renders error
	stopped bool
	reloads int
	stuck   error // error of the next reload
	log     testkit.Log
}

// logged counts the lines about the file.
func (b *bench) logged() int { return strings.Count(b.log.String(), " file=") }

func newBench(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{t: t}
	b.Daemon = &Daemon{
		Process: supervise.Supervisor{
			Command: supervise.Command{Path: "sleep", Args: []string{"1000"}}, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		},
		Conf: filepath.Join(dir, "daemon.conf"),
		Check: func(_ context.Context, candidate string) error {
			text, err := os.ReadFile(candidate)
			if err == nil && strings.Contains(string(text), "bad") {
				err = errors.New("line 1: bad")
			}
			return err
		},
		Reload: func(context.Context) error { b.reloads++; return b.stuck },
	}
	t.Cleanup(b.Close)
	return b
}

// apply calls Apply, and waits for the daemon if it is to run.
func (b *bench) apply() (bool, error) {
	b.t.Helper()
	changed, err := b.Apply(b.t.Context(), Target{Conf: []byte(b.text), Err: b.renders, Stopped: b.stopped})
	if b.Wanted() {
		testkit.Await(b.t, "the daemon to run", func() bool { return b.Health() == nil })
	}
	return changed, err
}

// applies calls apply, and compares the result.
func (b *bench) applies(t testing.TB, changed bool, failed error) {
	t.Helper()
	got, err := b.apply()
	testkit.Equal(testkit.In(t, "changed"), changed, got)
	testkit.Is(t, err, failed)
}

// file returns the content of the daemon's file.
func (b *bench) file() string {
	text, _ := os.ReadFile(b.Conf)
	return string(text)
}

func TestApply(t *testing.T) {
	b := newBench(t, t.TempDir())
	broken, stuck := errors.New("no such field"), errors.New("no answer")
	for _, step := range []struct {
		name           string
		text           string
		renders, stuck error
		stopped        bool
		disk           string // what another program wrote meanwhile
		changed        bool
		err            error
		want           string
		reloads, lines int // since the start
		status         state.Daemon
	}{
		{name: "not wanted", text: "zero", stopped: true, want: "zero", lines: 1, status: state.Daemon{Reloads: 1}},
		{name: "first", text: "one", changed: true, want: "one", lines: 2, status: state.Daemon{Reloads: 2}},
		{name: "same", text: "one", want: "one", lines: 2, status: state.Daemon{Reloads: 2}},
		{name: "bad", text: "bad", err: errRefused, want: "one", lines: 3, status: state.Daemon{Reloads: 2, Refused: 1}},
		{name: "still bad", text: "bad", err: errRefused, want: "one", lines: 3, status: state.Daemon{Reloads: 2, Refused: 1}},
		{name: "another bad one", text: "bad 2", err: errRefused, want: "one", lines: 4, status: state.Daemon{Reloads: 2, Refused: 2}},
		{name: "as it was", text: "one", want: "one", lines: 5, status: state.Daemon{Reloads: 2, Refused: 2}},
		{name: "bad again", text: "bad 2", err: errRefused, want: "one", lines: 6, status: state.Daemon{Reloads: 2, Refused: 3}},
		{name: "good", text: "two", changed: true, want: "two", reloads: 1, lines: 7, status: state.Daemon{Reloads: 3, Refused: 3}},
		{name: "template fails", renders: broken, err: errRender, want: "two", reloads: 1, lines: 8, status: state.Daemon{Reloads: 3, Refused: 3, Failed: 1}},
		{name: "reload fails", text: "three", stuck: stuck, err: errReload, want: "two", reloads: 2, lines: 9, status: state.Daemon{Reloads: 3, Refused: 3, Failed: 2}},
		{name: "reload fails again", text: "three", stuck: stuck, err: errReload, want: "two", reloads: 3, lines: 9, status: state.Daemon{Reloads: 3, Refused: 3, Failed: 2}},
		{name: "it may have reloaded nevertheless", text: "two", changed: true, want: "two", reloads: 4, lines: 10, status: state.Daemon{Reloads: 4, Refused: 3, Failed: 2}},
		{name: "reload works", text: "three", changed: true, want: "three", reloads: 5, lines: 11, status: state.Daemon{Reloads: 5, Refused: 3, Failed: 2}},
		{name: "it ends instead", text: "four", stuck: supervise.ErrNotRunning, changed: true, want: "four", reloads: 6, lines: 12, status: state.Daemon{Reloads: 6, Refused: 3, Failed: 2}},
		{name: "somebody wrote", text: "four", disk: "mine", changed: true, want: "four", reloads: 7, lines: 13, status: state.Daemon{Reloads: 7, Refused: 3, Failed: 2}},
		{name: "not wanted any more", text: "five", stopped: true, changed: true, want: "five", reloads: 7, lines: 14, status: state.Daemon{Reloads: 8, Refused: 3, Failed: 2}},
		{name: "still not wanted", text: "five", stopped: true, want: "five", reloads: 7, lines: 14, status: state.Daemon{Reloads: 8, Refused: 3, Failed: 2}},
		{name: "wanted again, and bad", text: "bad", changed: true, err: errRefused, want: "five", reloads: 7, lines: 16, status: state.Daemon{Reloads: 8, Refused: 4, Failed: 2}},
	} {
		b.text, b.renders, b.stuck, b.stopped = step.text, step.renders, step.stuck, step.stopped
		if step.disk != "" {
			testkit.WriteFile(t, b.Conf, []byte(step.disk))
		}
		in := testkit.In(t, step.name)
		b.applies(in, step.changed, step.err)
		if running := b.Process.PID() != 0; running == step.stopped || b.Wanted() == step.stopped {
			t.Errorf("%s: it runs: %v, is wanted: %v", step.name, running, b.Wanted())
		}
		testkit.Equal(in, step.want, b.file())
		testkit.Equal(in, [2]int{step.reloads, step.lines}, [2]int{b.reloads, b.logged()})
		got := b.Status()
		testkit.Equal(in, step.err != nil, got.Problem != "")
		testkit.Equal(in, got.Refused+got.Failed > 0, got.LastRefusal != nil)
		got.PID, got.Problem, got.LastReload, got.LastRefusal = 0, "", time.Time{}, nil
		testkit.Equal(in, step.status, got)
		left, _ := filepath.Glob(filepath.Join(filepath.Dir(b.Conf), ".*"))
		testkit.Empty(in, left)
	}
}

// After a restart of the agent the daemon is a new process, perhaps of another version.
func TestApplyChecksLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		text    string
		changed bool
		err     error
	}{{"one", true, nil}, {"one", true, nil}, {"bad", true, errRefused}} {
		b := newBench(t, dir)
		b.text = step.text
		b.applies(testkit.In(t, step.text), step.changed, step.err)
		testkit.Equal(t, "one", b.file())
	}
}

// Hard case 27: modification times, which steps of the clock change, are ignored.
func TestHardCase27FileTimes(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.text = "one"
	b.apply()
	for _, year := range []int{1970, 2100} {
		when := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		testkit.Must(t, os.Chtimes(b.Conf, when, when))
		b.applies(testkit.In(t, "in", year), false, nil)
	}
}

func TestApplyEndsWithTheAgent(t *testing.T) {
	b := newBench(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	b.Check = func(ctx context.Context, _ string) error { cancel(); <-ctx.Done(); return ctx.Err() }
	_, err := b.Apply(ctx, Target{})
	testkit.Is(t, err, context.Canceled)
	if b.Status() != (state.Daemon{}) || b.logged() != 0 || b.Wanted() {
		t.Errorf("counted as a refusal: %+v", b.Status())
	}
}

func TestCheckHangs(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.text = "one"
	was := checkTimeout
	checkTimeout = 50 * time.Millisecond
	t.Cleanup(func() { checkTimeout = was })
	b.Check = func(ctx context.Context, _ string) error {
		_, err := supervise.Output(ctx, "sh", "-c", "sleep 1000")
		return err
	}
	if _, err := b.apply(); !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Error(err)
	}
}

func TestDiskFaults(t *testing.T) {
	for name, spoil := range map[string]func(testing.TB, string) func(){"read-only": testkit.LockDisk, "full": testkit.FillDisk} {
		t.Run(name, func(t *testing.T) {
			dir := testkit.SmallDisk(t)
			b := newBench(t, dir)
			b.text = "one"
			b.applies(t, true, nil)
			mend := spoil(t, dir)
			b.text = strings.Repeat("two", 10_000)
			for range 2 {
				b.applies(t, false, errWrite)
			}
			testkit.Equal(t, "one", b.file())
			testkit.Equal(testkit.In(t, b.Status()), [2]int{0, 1}, [2]int{b.reloads, b.Status().Failed})
			mend()
			b.applies(testkit.In(t, "after it was mended"), true, nil)
			testkit.Equal(t, b.text, b.file())
		})
	}
}

// A daemon that exits is restarted after the clean-up, and no longer after Close, which drains
// it.
func TestDaemonIsKeptRunning(t *testing.T) {
	b := newBench(t, t.TempDir())
	ended, drained := make(chan struct{}, 1), 0
	b.Process.Backoff.Min = time.Millisecond
	b.Process.After = func(context.Context) error { ended <- struct{}{}; return nil }
	b.Drain = func() { drained++ }
	b.applies(t, true, nil)
	first := b.Process.PID()
	testkit.Must(t, b.Process.Signal(unix.SIGKILL))
	<-ended
	testkit.Await(t, "a new daemon", func() bool { pid := b.Process.PID(); return pid != 0 && pid != first })
	testkit.Equal(testkit.In(t, b.Status()), [2]int{1, 1}, [2]int{b.Status().Restarts, b.Status().Reloads})
	b.Close()
	if b.Process.PID() != 0 || b.Wanted() || drained != 1 {
		t.Errorf("closed: process %d, wanted %v, drained %d times", b.Process.PID(), b.Wanted(), drained)
	}
	b.text = "another"
	if _, err := b.apply(); err != nil || b.Wanted() {
		t.Errorf("started after it was closed, error %v", err)
	}
}
