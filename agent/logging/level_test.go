package logging

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseLevel(t *testing.T) {
	for in, want := range map[string]slog.Level{"DEBUG": slog.LevelDebug, "info": slog.LevelInfo, "Warn": slog.LevelWarn, "ERROR": slog.LevelError} {
		got, err := ParseLevel(in)
		testkit.Check(t, err)
		testkit.Equal(testkit.In(t, in), want, got)
	}
	for _, in := range []string{"loud", "", "INFO+1"} {
		if got, err := ParseLevel(in); err == nil {
			t.Errorf("%q is taken for %v", in, got)
		}
	}
}

func TestFollow(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	var out testkit.Log
	f := LevelFollower{Dir: dir, Job: "haproxy", Usual: slog.LevelWarn, Level: &level, Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: &level}))}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	// Written in one step, as every followed file is: the follower would rightly report a file
	// that is empty between truncation and write.
	write := func(job, text string) error {
		aside := filepath.Join(t.TempDir(), "aside")
		return errors.Join(os.WriteFile(aside, []byte(text), 0o644), os.Rename(aside, file(dir, job)))
	}
	complaints := func() int { return strings.Count(out.String(), "level ignored") }
	tests := []struct {
		name       string
		do         func() error
		want       slog.Level
		complaints int
	}{
		{"for all", func() error { return SetLevel(dir, "", slog.LevelDebug) }, slog.LevelDebug, 0},
		{"for another job", func() error { return SetLevel(dir, "coredns", slog.LevelError) }, slog.LevelDebug, 0},
		{"for this one", func() error { return SetLevel(dir, "haproxy", slog.LevelError) }, slog.LevelError, 0},
		{"for all does not count then", func() error { return SetLevel(dir, "", slog.LevelInfo) }, slog.LevelError, 0},
		{"no longer for this one", func() error { return ResetLevel(dir, "haproxy") }, slog.LevelInfo, 0},
		{"a wrong word", func() error { return write("", "loud\n") }, slog.LevelWarn, 1},
		{"the same wrong word", func() error { return write("", "loud\n") }, slog.LevelWarn, 1},
		{"not a word at all", func() error { return write("haproxy", strings.Repeat("\x00", 1<<20)) }, slog.LevelWarn, 2},
		{"right again", func() error { return write("haproxy", "debug") }, slog.LevelDebug, 2},
		{"none", func() error { return os.Remove(file(dir, "haproxy")) }, slog.LevelWarn, 2},
	}
	for _, tt := range tests {
		testkit.Must(t, tt.do())
		testkit.Await(t, tt.name, func() bool { return level.Level() == tt.want && complaints() >= tt.complaints }, out.String)
		testkit.Equal(testkit.In(t, tt.name), tt.complaints, complaints())
	}
	stop()
	testkit.Check(t, <-ended)
	if got := strings.Count(out.String(), "log level changed"); got != 6 {
		t.Errorf("%d changes are logged, want 6\n%s", got, out.String())
	}
}

func TestGet(t *testing.T) {
	dir := t.TempDir()
	if _, set, err := Level(dir, ""); set || err != nil {
		t.Errorf("with nothing there: %v, %v", set, err)
	}
	testkit.Check(t, ResetLevel(dir, ""))
	testkit.Must(t, SetLevel(dir, "mdns", slog.LevelInfo))
	if level, set, err := Level(dir, "mdns"); level != slog.LevelInfo || !set || err != nil {
		t.Errorf("got %v, %v, %v", level, set, err)
	}
	info, err := os.Stat(file(dir, "mdns"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v: want 0644, so that root alone writes", info.Mode(), err)
	}
}
