package speaker

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osrg/gobgp/v4/api"

	vip "github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestAwait: a wait ends when BFD is up, after its time, and with the session.
func TestAwait(t *testing.T) {
	for name, tt := range map[string]struct {
		up, ends, want time.Duration
		came           bool
	}{
		"up at once":      {0, time.Hour, 0, true},
		"up in time":      {2 * time.Second, time.Hour, 2 * time.Second, true},
		"never up":        {time.Hour, time.Hour, bfdWait, false},
		"session is lost": {time.Hour, time.Second, time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.ends)
			defer cancel()
			began := time.Now()
			came := await(ctx, bfdWait, func() bool { return time.Since(began) >= tt.up })
			testkit.Equal(testkit.In(t, name), []any{tt.came, tt.want}, []any{came, time.Since(began)})
		})
	}
}

// TestAdmit: a router without BFD gets the routes at once, one with BFD that does not come up
// after the wait, and one whose session was lost meanwhile not at all.
func TestAdmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		running, err := New(vip.SpeakerOptions{ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.10"), Log: slog.New(slog.NewTextHandler(&log, nil))})
		testkit.Must(t, err)
		s := running.(*Speaker)
		defer s.Stop()
		router := func(address string, on bool) *vip.Peer {
			return &vip.Peer{BGPPeer: v1alpha1.BGPPeer{Address: netip.MustParseAddr(address), BFD: v1alpha1.BFD{Enabled: &on}}}
		}
		plain, silent, lost := router("192.0.2.1", false), router("192.0.2.2", true), router("2001:db8::3", true)
		expect := func(want ...string) {
			t.Helper()
			var got []string
			testkit.Must(t, s.server.ListDefinedSet(t.Context(), &api.ListDefinedSetRequest{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: admitted},
				func(set *api.DefinedSet) { got = set.List }))
			testkit.Equal(t, append([]string{nobody}, want...), slices.Clone(got))
		}
		for _, p := range []*vip.Peer{plain, silent, lost} {
			s.begin(p)
		}
		synctest.Wait()
		expect("192.0.2.1/32")
		testkit.Equal(t, waitsForBFD, s.problem(silent.Address, "down"))
		s.end(lost.Address)
		time.Sleep(bfdWait + time.Millisecond)
		expect("192.0.2.1/32", "192.0.2.2/32")
		testkit.Equal(t, []string{noBFD, "", ""}, []string{s.problem(silent.Address, "init"), s.problem(silent.Address, "up"), s.problem(plain.Address, "")})
		testkit.Contains(t, log.String(), noBFD, "peer=192.0.2.2")
		s.end(silent.Address) // the next session waits again
		s.end(plain.Address)
		expect()
	})
}
