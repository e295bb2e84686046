package health

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// memory returns a directory in memory, like /run.
func memory(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "track")
	testkit.Must(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// flip makes lb-or-api change again and again, and reports how long each change
// took to reach the file. The changes fall on all parts of the 250 units of
// time between two probes.
func flip(b *testing.B, dir string, pause time.Duration, change func(ok bool)) {
	b.Helper()
	file := filepath.Join(dir, "lb-or-api")
	var took []time.Duration
	for i := range b.N {
		ok, want := i%2 == 0, "0\n"
		if ok {
			want = "1\n"
		}
		time.Sleep(time.Duration(i*37%250) * pause)
		began := time.Now()
		change(ok)
		for {
			if got, _ := os.ReadFile(file); string(got) == want {
				break
			}
			if time.Since(began) > testkit.Patience {
				b.Fatal("the file does not change")
			}
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), "ms-median")
	b.ReportMetric(ms(took[len(took)-1]), "ms-worst")
}

// BenchmarkServiceToTrackFile measures from the moment a service fails or recovers.
func BenchmarkServiceToTrackFile(b *testing.B) {
	dir := memory(b)
	s := newService(b, true)
	s.status.Store(http.StatusInternalServerError)
	runMonitor(b, openTrack(b, dir), newCheck(FactAPI, newProbe(b, s.local()).Probe, vrrp.ServiceProbe))
	flip(b, dir, time.Millisecond, func(ok bool) {
		status := http.StatusInternalServerError
		if ok {
			status = http.StatusOK
		}
		s.status.Store(int32(status))
	})
}

// BenchmarkFactToTrackFile measures from the moment the agent knows.
func BenchmarkFactToTrackFile(b *testing.B) {
	dir := memory(b)
	board := runMonitor(b, openTrack(b, dir))
	flip(b, dir, time.Microsecond, func(ok bool) { board.Set(state.Fact{Name: FactAPI, OK: ok}) })
}

// BenchmarkProbe measures one probe, including the server's part.
func BenchmarkProbe(b *testing.B) {
	s := newService(b, true)
	h := newProbe(b, s.local())
	for b.Loop() {
		testkit.Must(b, h.Probe(context.Background()))
	}
}
