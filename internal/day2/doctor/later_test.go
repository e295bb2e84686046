package doctor

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/events"
)

// TestCertainStays: a cause that is certain at the end of a record remains so when the record
// continues. Each script is diagnosed at each moment.
func TestCertainStays(t *testing.T) {
	for name, tt := range causes {
		t.Run(name, func(t *testing.T) {
			list := play(t, holding+tt.script)
			whole := Diagnose(list)
			for _, e := range list {
				known := slices.DeleteFunc(slices.Clone(list), func(o events.Event) bool { return o.Time.After(e.Time) })
				for _, m := range Diagnose(known).Moves {
					if m.Cause.Sure != Certain {
						continue
					}
					if !slices.ContainsFunc(whole.Moves, func(later Move) bool {
						return later.Cause.Code == m.Cause.Code && later.Cause.Node == m.Cause.Node && later.At.Sub(m.At).Abs() < lookBack
					}) {
						t.Errorf("at %v, certain: %s; in the end %+v", e.Time.Sub(epoch), brief(&m), whole.Moves)
					}
				}
			}
		})
	}
}
