package logging

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

	"github.com/vipgen/vipgen/internal/testkit"
)

// Times have one format whatever the zone, and no line has an empty error.
func TestNew(t *testing.T) {
	at := time.Date(2026, 3, 2, 10, 10, 35, 509_123_456, time.FixedZone("", 3600))
	for format, want := range map[string]string{
		"text": "time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a\n" +
			"time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a\n" +
			"time=2026-03-02T09:10:35.509Z level=WARN msg=silent server=a error=\"connection refused\"\n",
		"json": `{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a"}` + "\n" +
			`{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a"}` + "\n" +
			`{"time":"2026-03-02T09:10:35.509Z","level":"WARN","msg":"silent","server":"a","error":"connection refused"}` + "\n",
	} {
		var out bytes.Buffer
		log := New(&out, format, slog.LevelInfo)
		for _, err := range []any{error(nil), "", errors.New("connection refused")} {
			r := slog.NewRecord(at, slog.LevelWarn, "silent", 0)
			r.Add("server", "a", "error", err)
			testkit.Must(t, log.Handler().Handle(t.Context(), r))
		}
		log.Debug("not logged")
		testkit.Equal(testkit.In(t, format), want, out.String())
	}
}

// Lines of daemons become records with their level, and without their own time stamps.
func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"Mon Nov  3 06:22:17 2025: (demo_API_0) Entering MASTER STATE\n":                `level=INFO msg="(demo_API_0) Entering MASTER STATE" daemon=d`,
		"(demo_API_0) Entering MASTER STATE\n":                                          `level=INFO msg="(demo_API_0) Entering MASTER STATE" daemon=d`,
		"[WARNING]  (17) : Server api-servers/master-1 is UP.\n":                        `level=WARN msg="Server api-servers/master-1 is UP." daemon=d`,
		"[ALERT]    (1) : config : parsing failed":                                      `level=ERROR msg="config : parsing failed" daemon=d`,
		"[NOTICE]   (1) : New worker (17) forked\n":                                     `level=INFO msg="New worker (17) forked" daemon=d`,
		"[INFO] plugin/hosts: reloaded\n":                                               `level=INFO msg="plugin/hosts: reloaded" daemon=d`,
		"[ERROR] plugin/errors: 2 api.demo.example.com. A: read udp 192.0.2.1: timeout": `level=ERROR msg="plugin/errors: 2 api.demo.example.com. A: read udp 192.0.2.1: timeout" daemon=d`,
		"[OTHER] of somebody":                                                           `level=INFO msg="[OTHER] of somebody" daemon=d`,
		"exactly twenty-four long:x":                                                    `level=INFO msg="exactly twenty-four long:x" daemon=d`,
		"... 5 lines left out\n":                                                        `level=INFO msg="... 5 lines left out" daemon=d`,
		" \n":                                                                           "",
		"Mon Nov  3 06:22:17 2025:\n":                                                   "",
	} {
		var out bytes.Buffer
		if n, err := Lines(New(&out, "text", slog.LevelInfo), "d").Write([]byte(line)); n != len(line) || err != nil {
			t.Errorf("%q: %d, %v", line, n, err)
		}
		_, got, _ := strings.Cut(strings.TrimSpace(out.String()), " ")
		testkit.Equal(testkit.In(t, line), want, got)
	}
}

func TestTransitions(t *testing.T) {
	disk, rights := errors.New("disk full"), errors.New("permission denied")
	for _, tt := range []struct {
		name string
		in   []error
		want string
	}{
		{"all is well", []error{nil, nil}, ""},
		{"it goes on", []error{disk, disk, errors.New("disk full")}, "level=ERROR msg=lost error=\"disk full\" file=f\n"},
		{"it turns into something else", []error{disk, rights, rights},
			"level=ERROR msg=lost error=\"disk full\" file=f\nlevel=ERROR msg=lost error=\"permission denied\" file=f\n"},
		{"it ends, and begins again", []error{disk, nil, nil, disk},
			"level=ERROR msg=lost error=\"disk full\" file=f\nlevel=INFO msg=kept file=f\nlevel=ERROR msg=lost error=\"disk full\" file=f\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}}))
			var x Transitions
			for _, err := range tt.in {
				x.Error(log, err, "lost", "kept", "file", "f")
			}
			testkit.Equal(t, tt.want, out.String())
		})
	}
}

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
	for _, tt := range []struct {
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
	} {
		testkit.Must(t, tt.do())
		testkit.Await(t, tt.name, func() bool { return level.Level() == tt.want && complaints() >= tt.complaints }, out.String)
		testkit.Equal(testkit.In(t, tt.name), tt.complaints, complaints())
	}
	stop()
	testkit.Check(t, <-ended)
	testkit.Equal(testkit.In(t, out.String()), 6, strings.Count(out.String(), "log level changed"))
}
