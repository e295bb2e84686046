package health

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/agent/trackfile"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/ticker"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// newMonitor returns a monitor of the API group.
func newMonitor(files Terms, log io.Writer) *Monitor {
	return &Monitor{
		Board: NewBoard(), Files: files, Groups: []v1alpha1.Group{apiGroup}, Role: v1alpha1.RoleMaster,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// runMonitor runs a monitor until the test ends.
func runMonitor(t testing.TB, files Terms, checks ...Check) *Board {
	t.Helper()
	m := newMonitor(files, io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx, checks) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m.Board
}

func openTrack(t testing.TB, dir string) *trackfile.Files {
	t.Helper()
	files, err := trackfile.Open(dir)
	testkit.Must(t, err)
	_, terms := vrrp.PriorityTerms(&apiGroup, v1alpha1.RoleMaster)
	testkit.Must(t, files.Ensure(terms))
	return files
}

// unhurried is for services whose first answer may be late on a busy machine.
var unhurried = vrrp.ProbeTiming{Interval: 250 * time.Millisecond, Confirm: 50 * time.Millisecond, Timeout: testkit.Patience, Times: 2}

func TestMonitorWritesTrackFiles(t *testing.T) {
	dir := t.TempDir()
	haproxy, api := newService(t, false), newService(t, true)
	board := runMonitor(t, openTrack(t, dir),
		newCheck(FactHAProxy, newProbe(t, haproxy.local()).Probe, unhurried),
		newCheck(FactAPI, newProbe(t, api.local()).Probe, unhurried))
	says := func(path, orAPI string) {
		t.Helper()
		testkit.Await(t, "lb-path "+path+" and lb-or-api "+orAPI, func() bool {
			a, _ := os.ReadFile(filepath.Join(dir, "lb-path"))
			b, _ := os.ReadFile(filepath.Join(dir, "lb-or-api"))
			return string(a) == path+"\n" && string(b) == orAPI+"\n"
		})
	}
	says("0", "1") // the redirect is not in place yet
	board.Set(state.Fact{Name: FactRedirect, OK: true})
	says("1", "1")
	haproxy.status.Store(http.StatusServiceUnavailable)
	says("0", "1")
	api.status.Store(http.StatusInternalServerError)
	says("0", "0")
	haproxy.status.Store(http.StatusOK)
	says("1", "1")
	board.Set(state.Fact{Name: FactRedirect})
	says("0", "0") // HAProxy is out of reach, and there is no API server here
	want := []state.Fact{{Name: FactAPI, Why: "status 500 Internal Server Error"}, {Name: FactHAProxy, OK: true}, {Name: FactRedirect}}
	testkit.Equal(t, want, board.Facts())
}

// fragile files cannot be written at first.
type fragile struct {
	failures int
	written  []string
	repeated int
}

func (f *fragile) Repeat() error { f.repeated++; return nil }

func (f *fragile) Set(name string, on bool) (bool, error) {
	if f.failures > 0 {
		f.failures--
		return false, errors.New("no space left")
	}
	if on && !slices.Contains(f.written, name) {
		f.written = append(f.written, name)
		return true, nil
	}
	return false, nil
}

func TestMonitorRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(ticker.UntilNext(time.Second))
		files := &fragile{failures: 7}
		m := newMonitor(files, io.Discard)
		m.Board.Set(state.Fact{Name: factMachineConfig, OK: true})
		ctx, cancel := context.WithTimeout(context.Background(), 9500*time.Millisecond)
		defer cancel()
		m.Run(ctx, nil)
		if files.failures != 0 || !slices.Equal(files.written, []string{"machine-config"}) {
			t.Errorf("%d failures left, written %v", files.failures, files.written)
		}
		testkit.Equal(t, 9, files.repeated)
	})
}

// sealed files are up to date, and cannot be written.
type sealed struct{ fragile }

func (s *sealed) Repeat() error { return errors.New("read-only file system") }

// A round without a file to write does not prove that files are writable again.
func TestMonitorProbesOnlyByWriting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		m := newMonitor(&sealed{}, &out)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		time.AfterFunc(2500*time.Millisecond, func() { m.Board.Set(state.Fact{Name: "api", Why: "refused"}) })
		m.Run(ctx, nil)
		if n := strings.Count(out.String(), "cannot write track files"); n != 1 || strings.Contains(out.String(), "track files written again") {
			t.Errorf("%d complaints:\n%s", n, out.String())
		}
	})
}

// keepalived may have missed a write: it is repeated soon afterwards, and seldom from then on.
func TestMonitorRepeats(t *testing.T) {
	for _, tt := range []struct{ seconds, want int }{{9, 9}, {12, 10}, {25, 11}, {60, 14}} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(ticker.UntilNext(time.Second))
			files := &fragile{}
			m := newMonitor(files, io.Discard)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(tt.seconds)*time.Second+500*time.Millisecond)
			defer cancel()
			m.Run(ctx, nil)
			if files.repeated < tt.want-1 || files.repeated > tt.want+1 {
				t.Errorf("repeated %d times in %d s, want about %d", files.repeated, tt.seconds, tt.want)
			}
			m.Board.Set(state.Fact{Name: factMachineConfig, OK: true})
			files.repeated = 0
			time.Sleep(ticker.UntilNext(time.Second))
			ctx, cancel = context.WithTimeout(context.Background(), 3500*time.Millisecond)
			defer cancel()
			m.Run(ctx, nil)
			testkit.Equal(t, 3, files.repeated)
		})
	}
}
