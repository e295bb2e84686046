package bgp

import (
	"log/slog"
	"net/netip"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Speaker holds BGP sessions with routers, and accepts none of their routes. A router with
// BFD gets the routes of a new session once BFD is up, or has not come up for five seconds.
type Speaker interface {
	// SetPeers changes the sessions to those with these routers. Unchanged ones stay up.
	SetPeers([]Peer) error
	// Announce replaces the announced routes.
	Announce([]Route) error
	// Sessions returns the states of the sessions.
	Sessions() []state.BGPPeer
	// Stop ends the sessions.
	Stop()
}

// SpeakerOptions are the settings of a speaker that cannot change while it runs.
type SpeakerOptions struct {
	ASN uint32
	// RouterID is unique among the nodes.
	RouterID    netip.Addr
	Communities []uint32
	Log         *slog.Logger
}

// Peer is a router.
type Peer struct {
	v1alpha1.BGPPeer
	// LocalASN is the AS number of this node towards it.
	LocalASN uint32
	// Password of the session; empty for none.
	Password string
}

// Internal reports whether the session is in one AS.
func (p *Peer) Internal() bool { return p.LocalASN == p.ASN }

// Route is a host route to this node.
type Route struct {
	VIP netip.Addr
	// Preference is at least 0; routers use the nodes with the lowest.
	Preference int
	// First makes routers prefer it to others with the same preference.
	First bool
}

// NewSpeaker starts a speaker. Only vipgen-bgp sets it: the agent of the other jobs links
// no BGP.
var NewSpeaker func(SpeakerOptions) (Speaker, error)
