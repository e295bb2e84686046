package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestLogLimit: lines within the limit are passed on unchanged, those beyond it are counted.
func TestLogLimit(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	clock := time.Unix(0, 0)
	reads := 0
	now := func() time.Time {
		if reads++; reads == 12 { // before the eleventh line
			clock = clock.Add(time.Second)
		}
		return clock
	}
	var out bytes.Buffer
	seen := 0
	LogLimit{Rate: 200, Burst: 500}.copy(&out, strings.NewReader(strings.Repeat(line, 15)+"end"), func([]byte) bool { seen++; return true }, now)
	want := strings.Repeat(line, 5) + "... 5 lines left out\n" + strings.Repeat(line, 2) + "... 4 lines left out\n"
	testkit.Equal(t, want, out.String())
	testkit.Equal(t, 16, seen)
}

// TestDaemonLog: a daemon that logs far beyond its limit, faster than it is read, exits as soon
// as otherwise; its first lines are logged.
func TestDaemonLog(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.Must(t, err)
	defer log.Close()
	const lines = 200_000
	began := time.Now()
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", fmt.Sprintf("seq %d; seq 3 >&2", lines)}, Stderr: log, Log: LogLimit{Rate: 1, Burst: 1000}})
	testkit.Must(t, err)
	awaitEnd(t, p)
	data := testkit.ReadFile(t, log.Name())
	got := string(data)
	// The lines within the rate, and one summary of dropped lines for each.
	most := 1200 + 10*int(time.Since(began).Seconds())
	if !strings.HasPrefix(got, "1\n2\n3\n") || len(got) > most || !strings.Contains(got, "lines left out\n") {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}

// TestLastWords: everything that a daemon logged before it exited is passed on, however late
// the agent is.
func TestLastWords(t *testing.T) {
	was := drainTime
	drainTime = 0
	t.Cleanup(func() { drainTime = was })
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	testkit.Must(t, err)
	defer log.Close()
	const lines = 5_000 // a pipe of any size has room for them
	p, err := Start(Command{Path: "seq", Args: []string{fmt.Sprint(lines)}, Stderr: log, Log: LogLimit{Burst: 1 << 20}})
	testkit.Must(t, err)
	awaitEnd(t, p)
	got := string(testkit.ReadFile(t, log.Name()))
	if n := strings.Count(got, "\n"); n != lines || !strings.HasSuffix(got, fmt.Sprintf("\n%d\n", lines)) {
		t.Errorf("%d of %d lines, at last %q", n, lines, got[max(0, len(got)-20):])
	}
}

func awaitEnd(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(testkit.Patience):
		t.Fatal("it waits for its log")
	}
}
