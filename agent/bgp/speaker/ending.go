package speaker

import (
	"strings"

	"github.com/osrg/gobgp/v4/api"

	"github.com/vipgen/vipgen/agent/state"
)

// ending returns why a session ended. GoBGP ends one with an administrative reset when BFD goes
// down, and routers do with subcode 10 of Cease (RFC 9384).
func ending(reason api.PeerState_DisconnectReason, message string) string {
	_, notification, _ := strings.Cut(message, " ")
	switch reason {
	case api.PeerState_DISCONNECT_REASON_HOLD_TIMER_EXPIRED:
		return state.HoldTimeExpired
	case api.PeerState_DISCONNECT_REASON_READ_FAILED, api.PeerState_DISCONNECT_REASON_WRITE_FAILED:
		return state.ConnectionLost
	case api.PeerState_DISCONNECT_REASON_NOTIFICATION_RECEIVED:
		if strings.HasPrefix(notification, "code 6(cease) subcode 10(") {
			return state.BFDDown
		}
		return state.RouterRefused + notification
	case api.PeerState_DISCONNECT_REASON_NOTIFICATION_SENT:
		if strings.HasPrefix(notification, "code 6(cease) subcode 4(") {
			return state.BFDDown
		}
		return state.SessionEnded + notification
	}
	return message
}
