package speaker

import (
	"context"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osrg/gobgp/v4/api"

	vip "github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/agent/state"
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

// TestHold: a router whose BFD does not come up gets the routes after the wait, one whose session
// was lost meanwhile does not, and each session waits anew.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testkit.Log
		text := slog.NewTextHandler(&log, nil)
		s, err := start(vip.SpeakerOptions{ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.10"), Log: slog.New(text)}, text)
		testkit.Must(t, err)
		on := true
		silent, lost := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::3")
		expect := func(want ...string) {
			t.Helper()
			var got []string
			testkit.Must(t, s.server.ListDefinedSet(t.Context(), &api.ListDefinedSetRequest{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: held},
				func(set *api.DefinedSet) { got = set.List }))
			testkit.Equal(t, append([]string{nobody}, want...), got)
		}
		for _, r := range []netip.Addr{silent, lost} {
			s.set(r, &vip.Peer{BGPPeer: v1alpha1.BGPPeer{BFD: v1alpha1.BFD{Enabled: &on}}})
			s.hold(r)
			s.begin(r)
		}
		s.hold(lost)
		expect("192.0.2.2/32", "2001:db8::3/128")
		testkit.Equal(t, state.BFDPending, s.problem(silent, "down"))
		time.Sleep(bfdWait + time.Millisecond)
		expect("2001:db8::3/128")
		testkit.Equal(t, []string{state.BFDMissing, ""}, []string{s.problem(silent, "init"), s.problem(silent, "up")})
		testkit.Contains(t, log.String(), state.BFDMissing, "peer=192.0.2.2")
		s.hold(silent)
		expect("2001:db8::3/128", "192.0.2.2/32")
		s.set(silent, nil)
		s.set(lost, nil)
		expect()
		for _, r := range []string{"fe80::1%ens3", "fe80::1%ens4"} { // one would be held for the other
			s.set(netip.MustParseAddr(r), &vip.Peer{BGPPeer: v1alpha1.BGPPeer{BFD: v1alpha1.BFD{Enabled: &on}}})
			s.hold(netip.MustParseAddr(r))
		}
		expect()
		s.server.Stop()
	})
}
