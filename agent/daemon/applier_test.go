package daemon

import (
	"bytes"
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

// bench is an Applier with a daemon that is easy to upset.
type bench struct {
	*Applier
	text    string // what is rendered
	renders error
	reloads int
	stuck   error // of reload
	log     bytes.Buffer
}

func newBench(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{}
	b.Applier = &Applier{
		Path:   filepath.Join(dir, "daemon.conf"),
		Render: func() ([]byte, error) { return []byte(b.text), b.renders },
		Check: func(_ context.Context, candidate string) error {
			text, err := os.ReadFile(candidate)
			if err == nil && strings.Contains(string(text), "bad") {
				err = errors.New("line 1: bad")
			}
			return err
		},
		Reload: func(context.Context) error { b.reloads++; return b.stuck },
		Log:    slog.New(slog.NewTextHandler(&b.log, nil)),
	}
	return b
}

func (b *bench) logged() int { return strings.Count(b.log.String(), "\n") }

func TestApply(t *testing.T) {
	b := newBench(t, t.TempDir())
	broken, stuck := errors.New("no such field"), errors.New("no answer")
	for _, step := range []struct {
		name           string
		text           string
		renders, stuck error
		disk           string // what somebody else wrote meanwhile
		changed        bool
		err            error
		want           string
		reloads, lines int // since the start
		status         state.Config
	}{
		{name: "first", text: "one", changed: true, want: "one", reloads: 1, lines: 1, status: state.Config{Applied: 1}},
		{name: "same", text: "one", want: "one", reloads: 1, lines: 1, status: state.Config{Applied: 1}},
		{name: "bad", text: "bad", err: ErrRefused, want: "one", reloads: 1, lines: 2, status: state.Config{Applied: 1, Refused: 1}},
		{name: "still bad", text: "bad", err: ErrRefused, want: "one", reloads: 1, lines: 2, status: state.Config{Applied: 1, Refused: 1}},
		{name: "another bad one", text: "bad 2", err: ErrRefused, want: "one", reloads: 1, lines: 3, status: state.Config{Applied: 1, Refused: 2}},
		{name: "as it was", text: "one", want: "one", reloads: 1, lines: 4, status: state.Config{Applied: 1, Refused: 2}},
		{name: "bad again", text: "bad 2", err: ErrRefused, want: "one", reloads: 1, lines: 5, status: state.Config{Applied: 1, Refused: 3}},
		{name: "good", text: "two", changed: true, want: "two", reloads: 2, lines: 6, status: state.Config{Applied: 2, Refused: 3}},
		{name: "template fails", renders: broken, err: ErrRender, want: "two", reloads: 2, lines: 7, status: state.Config{Applied: 2, Refused: 3, Failed: 1}},
		{name: "reload fails", text: "three", stuck: stuck, err: ErrReload, want: "two", reloads: 3, lines: 8, status: state.Config{Applied: 2, Refused: 3, Failed: 2}},
		{name: "reload fails again", text: "three", stuck: stuck, err: ErrReload, want: "two", reloads: 4, lines: 8, status: state.Config{Applied: 2, Refused: 3, Failed: 2}},
		{name: "reload works", text: "three", changed: true, want: "three", reloads: 5, lines: 9, status: state.Config{Applied: 3, Refused: 3, Failed: 2}},
		{name: "somebody wrote", text: "three", disk: "mine", changed: true, want: "three", reloads: 6, lines: 10, status: state.Config{Applied: 4, Refused: 3, Failed: 2}},
	} {
		b.text, b.renders, b.stuck = step.text, step.renders, step.stuck
		if step.disk != "" {
			if err := os.WriteFile(b.Path, []byte(step.disk), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := b.Apply(context.Background())
		if changed != step.changed || !errors.Is(err, step.err) {
			t.Errorf("%s: changed %v, error %v; want %v, %v", step.name, changed, err, step.changed, step.err)
		}
		if got, _ := os.ReadFile(b.Path); string(got) != step.want {
			t.Errorf("%s: the file has %q, want %q", step.name, got, step.want)
		}
		if b.reloads != step.reloads || b.logged() != step.lines {
			t.Errorf("%s: %d reloads, %d lines logged; want %d, %d:\n%s", step.name, b.reloads, b.logged(), step.reloads, step.lines, &b.log)
		}
		got := b.Status()
		if (got.Problem != "") != (step.err != nil) {
			t.Errorf("%s: problem %q", step.name, got.Problem)
		}
		if (got.RefusedAt.IsZero()) != (got.Refused+got.Failed == 0) {
			t.Errorf("%s: refused at %v", step.name, got.RefusedAt)
		}
		got.Problem, got.AppliedAt, got.RefusedAt = "", time.Time{}, time.Time{}
		if got != step.status {
			t.Errorf("%s: status %+v, want %+v", step.name, got, step.status)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(b.Path), ".*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", step.name, left)
		}
	}
}

// After a restart the daemon is a new one, perhaps of another version.
func TestApplyChecksWhatAnEarlierRunLeft(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []struct {
		text    string
		changed bool
		err     error
	}{{"one", true, nil}, {"one", true, nil}, {"bad", false, ErrRefused}} {
		b := newBench(t, dir)
		b.text = step.text
		if changed, err := b.Apply(context.Background()); changed != step.changed || !errors.Is(err, step.err) {
			t.Errorf("%q: changed %v, error %v", step.text, changed, err)
		}
		if got, _ := os.ReadFile(b.Path); string(got) != "one" {
			t.Errorf("the file has %q", got)
		}
	}
}

// Hard case 27: a file's times, which steps of the clock move, mean nothing.
func TestHardCase27FileTimes(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.text = "one"
	b.Apply(context.Background())
	for _, year := range []int{1970, 2100} {
		when := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := os.Chtimes(b.Path, when, when); err != nil {
			t.Fatal(err)
		}
		if changed, err := b.Apply(context.Background()); changed || err != nil {
			t.Errorf("in %d: changed %v, error %v", year, changed, err)
		}
	}
}

func TestApplyEndsWithTheAgent(t *testing.T) {
	b := newBench(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	b.Check = func(ctx context.Context, _ string) error { cancel(); <-ctx.Done(); return ctx.Err() }
	if _, err := b.Apply(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if b.Status() != (state.Config{}) || b.logged() != 0 {
		t.Errorf("counted as a refusal: %+v\n%s", b.Status(), &b.log)
	}
}

func TestCheckHangs(t *testing.T) {
	b := newBench(t, t.TempDir())
	b.text = "one"
	b.CheckTimeout = 50 * time.Millisecond
	b.Check = func(ctx context.Context, _ string) error {
		_, err := supervise.Output(ctx, "sh", "-c", "sleep 1000")
		return err
	}
	if _, err := b.Apply(context.Background()); !errors.Is(err, ErrRefused) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// disk gives a directory on a file system of its own, 64 KiB large.
func disk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatalf("mounting needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDiskFaults(t *testing.T) {
	testkit.Live(t)
	tests := map[string]struct{ breakDisk, mend func(dir string) error }{
		"read-only": {
			func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "") },
			func(dir string) error { return unix.Mount("", dir, "", unix.MS_REMOUNT, "size=64k") },
		},
		"full": {
			func(dir string) error {
				if err := os.WriteFile(filepath.Join(dir, "rubbish"), make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
					return errors.Join(errors.New("the disk is not full"), err)
				}
				return nil
			},
			func(dir string) error { return os.Remove(filepath.Join(dir, "rubbish")) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := disk(t)
			b := newBench(t, dir)
			b.text = "one"
			if _, err := b.Apply(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := tt.breakDisk(dir); err != nil {
				t.Fatal(err)
			}
			b.text = strings.Repeat("two", 10_000)
			for range 2 {
				if changed, err := b.Apply(context.Background()); changed || !errors.Is(err, ErrWrite) {
					t.Fatalf("changed %v, error %v", changed, err)
				}
			}
			if got, _ := os.ReadFile(b.Path); string(got) != "one" || b.reloads != 1 || b.Status().Failed != 1 {
				t.Errorf("%q, %d reloads, %+v", got, b.reloads, b.Status())
			}
			if err := tt.mend(dir); err != nil {
				t.Fatal(err)
			}
			if changed, err := b.Apply(context.Background()); !changed || err != nil {
				t.Errorf("after it was mended: changed %v, error %v", changed, err)
			}
			if got, _ := os.ReadFile(b.Path); string(got) != b.text {
				t.Errorf("after it was mended: %d bytes", len(got))
			}
		})
	}
}
