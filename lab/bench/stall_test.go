package bench

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestStall suspends the holder. With the virtual profile no VIP may move within
// VirtualStallMS, whenever in an interval the stall begins. With the fast profile a second is
// more than enough: the move is observed.
func TestStall(t *testing.T) {
	testkit.Measured(t)
	const promised = v1alpha1.VirtualStallMS * time.Millisecond
	for _, tt := range []struct {
		profile v1alpha1.Profile
		length  time.Duration
		phases  []float64
		moves   bool
	}{
		// Just before the next advertisement is the worst moment; the others cover unknown
		// effects.
		{v1alpha1.ProfileVirtual, promised, []float64{0.95, 0.9, 0.5, 0.05, 0.98}, false},
		{v1alpha1.ProfileFast, time.Second, []float64{0.5}, true},
	} {
		t.Run(string(tt.profile), func(t *testing.T) {
			cfg := config(t)
			s, err := build(t.Context(), cfg, profileOf(t, tt.profile), false)
			testkit.Must(t, err)
			testkit.Cleanup(t, s.Close)
			for _, phase := range tt.phases {
				machine := testkit.StartStopwatch()
				one, err := stall(t.Context(), s, Stalls{}, tt.length, phase)
				late := machine.End()
				testkit.Must(t, err)
				t.Logf("%v of an interval after an advert: %v", phase, one)
				switch {
				case tt.moves && one.elsewhere == 0:
					t.Errorf("the holder paused for %v, and no VIP moved", one.stood)
				case !tt.moves:
					testkit.Promise(t, "a VIP on another node", one.elsewhere, 0, time.Hour, late)
				}
			}
		})
	}
}

func profileOf(t *testing.T, name v1alpha1.Profile) Profile {
	t.Helper()
	for _, p := range Profiles() {
		if p.Name == string(name) {
			return p
		}
	}
	t.Fatalf("no profile %s", name)
	return Profile{}
}
