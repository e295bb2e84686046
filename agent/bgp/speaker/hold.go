package speaker

import (
	"context"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"

	"github.com/vipgen/vipgen/agent/state"
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
)

// held names the set of routers that do not get the routes. Its first entry is no router: an
// empty set would match all of them.
const (
	held   = "held"
	nobody = "0.0.0.0/32"
)

// exportToOthers keeps routes from held routers.
func (s *Speaker) exportToOthers(ctx context.Context) error {
	if err := s.server.AddDefinedSet(ctx, &api.AddDefinedSetRequest{DefinedSet: neighbors(nobody)}); err != nil {
		return err
	}
	return s.filter(ctx, held, api.PolicyDirection_POLICY_DIRECTION_EXPORT, &api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: held}},
		api.RouteAction_ROUTE_ACTION_REJECT, api.RouteAction_ROUTE_ACTION_ACCEPT)
}

func neighbors(prefix string) *api.DefinedSet {
	return &api.DefinedSet{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: held, List: []string{prefix}}
}

// session holds the routes back from a router with BFD.
type session struct {
	cancel context.CancelFunc // ends the wait
	// held reports that the router does not get the routes, withoutBFD that BFD had not come up.
	held, withoutBFD bool
}

// hold keeps the routes from a router whose session has not begun, or has ended.
func (s *Speaker) hold(router netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.peers[router]; !p.BFD.On() {
		return
	}
	for other := range s.peers {
		if other != router && prefix(other) == prefix(router) { // link-local, at another interface: GoBGP cannot tell them apart
			s.forget(other)
			return
		}
	}
	now := s.sessions[router]
	if now == nil {
		now = &session{cancel: func() {}}
		s.sessions[router] = now
	}
	now.cancel()
	if now.held {
		return
	}
	now.held, now.withoutBFD = true, false
	if err := s.server.AddDefinedSet(context.Background(), &api.AddDefinedSetRequest{DefinedSet: neighbors(prefix(router))}); err != nil {
		s.options.Log.Error("cannot hold routes back from a session", "peer", router, "error", err)
	}
}

// begin lets the router of a new session have the routes after BFD.
func (s *Speaker) begin(router netip.Addr) {
	s.hold(router) // the end of an earlier session may have been missed
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.sessions[router]
	if now == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	now.cancel = cancel
	go func() {
		up := await(ctx, bfdWait, func() bool { return s.bfd(router).GetSessionState() == api.BfdSessionState_BFD_SESSION_STATE_UP })
		s.release(ctx, router, !up)
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

// release lets a router have the routes, unless its session has ended.
func (s *Speaker) release(ctx context.Context, router netip.Addr, withoutBFD bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if withoutBFD {
		s.options.Log.Warn(state.BFDMissing, "peer", router, "waited", bfdWait)
	}
	s.sessions[router].withoutBFD = withoutBFD
	s.unhold(router)
	if err := s.server.ResetPeer(ctx, &api.ResetPeerRequest{Address: router.String(), Soft: true, Direction: api.ResetPeerRequest_DIRECTION_OUT}); err != nil {
		s.options.Log.Error("cannot announce VIPs in a session", "peer", router, "error", err)
	}
}

// forget ends the wait for BFD of a router that is removed. The caller holds mu.
func (s *Speaker) forget(router netip.Addr) {
	if now := s.sessions[router]; now != nil {
		now.cancel()
		s.unhold(router)
		delete(s.sessions, router)
	}
}

// unhold no longer keeps the routes from a router. The caller holds mu.
func (s *Speaker) unhold(router netip.Addr) {
	now := s.sessions[router]
	if !now.held {
		return
	}
	now.held = false
	if err := s.server.DeleteDefinedSet(context.Background(), &api.DeleteDefinedSetRequest{DefinedSet: neighbors(prefix(router))}); err != nil {
		s.options.Log.Error("cannot let a session have the routes", "peer", router, "error", err)
	}
}

// problem returns what is wrong with BFD of an established session.
func (s *Speaker) problem(router netip.Addr, bfd string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.sessions[router]
	switch {
	case now == nil || bfd == "up":
		return ""
	case now.withoutBFD:
		return state.BFDMissing
	}
	return state.BFDPending
}

func prefix(a netip.Addr) string { return netip.PrefixFrom(a, a.BitLen()).String() }
