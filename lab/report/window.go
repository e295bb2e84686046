package report

import (
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
)

// windowOf returns the window of the relevant time of the runs: from shortly before the fault to
// shortly after the last change.
func windowOf(vip string, runs []timeline.Run) timeline.Window {
	end := 200 * time.Millisecond
	begin := time.Duration(0)
	see := func(run timeline.Run, at time.Duration) {
		end = max(end, at-run.Fault)
		begin = min(begin, at-run.Fault)
	}
	for _, run := range runs {
		for _, a := range run.Answers {
			if !a.OK {
				see(run, a.From)
				see(run, a.To)
			}
		}
		for _, s := range run.Spans {
			if s.VIP == vip && s.From > run.Fault {
				see(run, s.From)
			}
		}
		for _, e := range run.Events {
			see(run, e.At)
		}
	}
	margin := (end - begin) / 8
	return timeline.Window{From: begin - margin, To: end + margin}
}
