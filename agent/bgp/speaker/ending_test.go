package speaker

import (
	"testing"

	"github.com/osrg/gobgp/v4/api"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestBFDWord: BFD that does not run is down.
func TestBFDWord(t *testing.T) {
	for s, want := range map[api.BfdSessionState]string{
		api.BfdSessionState_BFD_SESSION_STATE_UNSPECIFIED: "down", api.BfdSessionState_BFD_SESSION_STATE_INIT: "init", api.BfdSessionState_BFD_SESSION_STATE_UP: "up",
	} {
		testkit.Equal(testkit.In(t, s), want, bfdWord(s))
	}
}

// TestEnding: messages are those of GoBGP.
func TestEnding(t *testing.T) {
	for _, tt := range []struct {
		reason        api.PeerState_DisconnectReason
		message, want string
	}{
		{api.PeerState_DISCONNECT_REASON_HOLD_TIMER_EXPIRED, "hold-timer-expired", state.HoldTimeExpired},
		{api.PeerState_DISCONNECT_REASON_READ_FAILED, "read-failed", state.ConnectionLost},
		{api.PeerState_DISCONNECT_REASON_NOTIFICATION_RECEIVED, "notification-received code 2(open) subcode 2(bad peer as)", state.RouterRefused + "code 2(open) subcode 2(bad peer as)"},
		{api.PeerState_DISCONNECT_REASON_NOTIFICATION_RECEIVED, "notification-received code 6(cease) subcode 10(undefined)", state.BFDDown},
		{api.PeerState_DISCONNECT_REASON_NOTIFICATION_SENT, "notification-sent code 6(cease) subcode 4(administrative reset)", state.BFDDown},
		{api.PeerState_DISCONNECT_REASON_NOTIFICATION_SENT, "notification-sent code 2(open) subcode 2(bad peer as)", state.SessionEnded + "code 2(open) subcode 2(bad peer as)"},
		{api.PeerState_DISCONNECT_REASON_BAD_PEER_AS, "bad-peer-as", "bad-peer-as"},
	} {
		testkit.Equal(testkit.In(t, tt.message), tt.want, ending(tt.reason, tt.message))
	}
}
