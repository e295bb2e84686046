package keepalived

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// keepalived is started without BFD if it supports the option: one that was built without BFD,
// such as OpenShift's, exits at an unknown option.
func TestNoBFD(t *testing.T) {
	t.Parallel()
	for help, want := range map[string]bool{
		"  -P, --vrrp                   Only run with VRRP subsystem\n  -B, --no_bfd                 Don't run BFD subsystem\n": true,
		"  -P, --vrrp                   Only run with VRRP subsystem\n":                                                         false,
		"": false, // it does not even print a version
	} {
		dir := t.TempDir()
		program := filepath.Join(dir, "keepalived")
		testkit.Must(t, process.WriteProgram(program, []byte("#!/bin/sh\n[ \"$*\" = --help ] && cat >&2 <<'END'\n"+help+"END\n")))
		nothing := func(context.Context) error { return nil }
		d := newDaemon(t.Context(), program, dir, filepath.Join(dir, "keepalived.conf"), nothing, nothing, slog.New(slog.DiscardHandler))
		if got := slices.Contains(d.Process.Command.Args, "--no_bfd"); got != want {
			t.Errorf("help %q: arguments %q", help, d.Process.Command.Args)
		}
	}
}

// Lines that keepalived logs for each liveness probe are dropped; all others are logged.
func TestWroteState(t *testing.T) {
	for line, want := range map[string]bool{
		"Mon Nov  3 06:22:17 2025: Printing VRRP data for process(17) on signal\n":  true,
		"Printing parent data for process(16) on signal\n":                          true,
		"Mon Nov  3 06:22:17 2025: Printing VRRP stats for process(17) on signal\n": false,
		"Mon Nov  3 06:22:17 2025: (demo_API_0) Entering MASTER STATE\n":            false,
	} {
		testkit.Equal(testkit.In(t, line), want, wroteState([]byte(line)))
	}
}
