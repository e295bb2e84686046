package speaker

import (
	"context"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	vip "github.com/vipgen/vipgen/agent/bgp"
)

// A router with BFD gets the routes of a new session once BFD is up: until then a dead link
// would keep the routes for the hold time of BGP.
const (
	// bfdWait bounds the wait: a router without BFD gets the routes too, later, because a node
	// without routes is worse than one whose death is noticed late. BFD takes a second until
	// GoBGP starts it, and up to one for each of the router's first packets (RFC 5880 section
	// 6.8.3).
	bfdWait = 5 * time.Second
	bfdPoll = 50 * time.Millisecond

	waitsForBFD = "VIPs are announced once BFD is up"
	noBFD       = "BFD with the router does not come up: is it configured there? VIPs are announced without BFD"
)

// admitted names the set of routers that get the routes. Its first entry is no router: an empty
// set would match all of them.
const (
	admitted = "admitted"
	nobody   = "0.0.0.0/32"
)

// exportToAdmitted makes GoBGP send routes to admitted routers alone.
func (s *Speaker) exportToAdmitted(ctx context.Context) error {
	if err := s.server.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: neighbors(nobody)}); err != nil {
		return err
	}
	return s.accept(ctx, admitted, api.PolicyDirection_POLICY_DIRECTION_EXPORT,
		&api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: admitted}})
}

func neighbors(prefix string) *api.DefinedSet {
	return &api.DefinedSet{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: admitted, List: []string{prefix}}
}

// session is an established session.
type session struct {
	cancel context.CancelFunc
	// admitted reports that the router gets the routes, withoutBFD that BFD had not come up.
	admitted, withoutBFD bool
}

// peerChanged runs BFD with a router while its session is established, and lets it have the
// routes. GoBGP resets a session whenever BFD expires, also BFD that has never been up, as
// before the router's session makes the router begin its BFD.
func (s *Speaker) peerChanged(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
	if e.Type != apiutil.PEER_EVENT_STATE {
		return
	}
	address, established := e.Peer.State.NeighborAddress, e.Peer.State.SessionState == bgp.BGP_FSM_ESTABLISHED
	s.mu.Lock()
	p, known := s.peers[address]
	s.mu.Unlock()
	if !established {
		s.end(address)
	}
	if !known {
		return
	}
	if p.BFD.On() {
		if _, err := s.server.UpdatePeer(context.Background(), &api.UpdatePeerRequest{Peer: peer(&p, established)}); err != nil {
			s.options.Log.Error("cannot change BFD of a session", "peer", p.Address, "error", err)
		}
	}
	if established {
		s.begin(&p)
	}
}

// begin admits the router of a new session, at once or after BFD.
func (s *Speaker) begin(p *vip.Peer) {
	s.end(p.Address) // the end of an earlier session may have been missed
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.sessions[p.Address] = &session{cancel: cancel}
	s.mu.Unlock()
	if !p.BFD.On() {
		s.admit(ctx, p.Address, false)
		return
	}
	go func() {
		if up := await(ctx, bfdWait, func() bool { return s.bfdUp(p.Address) }); ctx.Err() == nil {
			s.admit(ctx, p.Address, !up)
		}
	}()
}

// await polls until up returns true or the time is over, and reports which.
func await(ctx context.Context, within time.Duration, up func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(bfdPoll)
	defer tick.Stop()
	for !up() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (s *Speaker) bfdUp(router netip.Addr) (up bool) {
	_ = s.server.ListPeer(context.Background(), &api.ListPeerRequest{Address: router.String()}, func(p *api.Peer) {
		up = p.GetState().GetBfdState().GetSessionState() == api.BfdSessionState_BFD_SESSION_STATE_UP
	})
	return up
}

// admit lets a router have the routes, unless its session has ended.
func (s *Speaker) admit(ctx context.Context, router netip.Addr, withoutBFD bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if withoutBFD {
		s.options.Log.Warn(noBFD, "peer", router, "waited", bfdWait)
	}
	err := s.server.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: neighbors(prefix(router))})
	if err == nil {
		now := s.sessions[router]
		now.admitted, now.withoutBFD = true, withoutBFD
		err = s.server.ResetPeer(ctx, &api.ResetPeerRequest{Address: router.String(), Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT})
	}
	if err != nil {
		s.options.Log.Error("cannot announce VIPs in a session", "peer", router, "error", err)
	}
}

// end keeps the routes from the next session with a router.
func (s *Speaker) end(router netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.sessions[router]
	if was == nil {
		return
	}
	was.cancel()
	delete(s.sessions, router)
	if !was.admitted {
		return
	}
	if err := s.server.DeleteDefinedSet(context.Background(), &api.DeleteDefinedSetRequest{DefinedSet: neighbors(prefix(router))}); err != nil {
		s.options.Log.Error("cannot hold routes back from a session", "peer", router, "error", err)
	}
}

// problem returns what is wrong with BFD of an established session.
func (s *Speaker) problem(router netip.Addr, bfd string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.sessions[router]
	switch {
	case now == nil || bfd == "" || bfd == "up":
		return ""
	case now.withoutBFD:
		return noBFD
	}
	return waitsForBFD
}

func prefix(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }
