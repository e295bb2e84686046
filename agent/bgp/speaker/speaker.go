// Package speaker is a BGP speaker with BFD, by GoBGP as a library. It announces host routes
// to routers, and accepts none of theirs. Only vipgen-bgp links it.
package speaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/server"

	vip "github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/agent/state"
)

// Speaker is a running speaker.
type Speaker struct {
	options vip.SpeakerOptions
	server  *server.BgpServer

	unwatch context.CancelFunc // ends peerChanged

	changing sync.Mutex // held while sessions are added and removed, and their BFD is changed

	mu       sync.Mutex // guards peers, sessions, open and ended
	peers    map[netip.Addr]vip.Peer
	sessions map[netip.Addr]*session // of peers with BFD
	open     map[netip.Addr]bool     // sessions that are established
	ended    map[netip.Addr]string   // why sessions ended last: GoBGP's list of peers has no reasons
	routes   []vip.Route
}

// New starts a speaker. It listens on no TCP port: nodes open the sessions.
func New(o vip.SpeakerOptions) (vip.Speaker, error) {
	s, err := start(o, errorsOnly{o.Log.Handler()})
	if err != nil {
		return nil, err
	}
	watch, unwatch := context.WithCancel(context.Background())
	s.unwatch = unwatch
	if err := s.server.WatchEvent(watch, server.WatchEventMessageCallbacks{OnPeerUpdate: s.peerChanged}, server.WatchPeer()); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// start starts a speaker that does not follow its sessions.
func start(o vip.SpeakerOptions, log slog.Handler) (*Speaker, error) {
	s := &Speaker{options: o, server: server.NewBgpServer(server.LoggerOption(slog.New(log), &slog.LevelVar{})),
		unwatch: func() {}, peers: map[netip.Addr]vip.Peer{}, sessions: map[netip.Addr]*session{}, open: map[netip.Addr]bool{}, ended: map[netip.Addr]string{}}
	go s.server.Serve()
	ctx := context.Background()
	// By default it has tables of all 25 families, which take 8 MiB.
	global := &api.Global{Asn: o.ASN, RouterId: o.RouterID.String(), ListenPort: -1, Families: []uint32{0, 1}}
	if err := s.server.StartBgp(ctx, &api.StartBgpRequest{Global: global}); err != nil {
		s.server.Stop()
		return nil, err
	}
	if err := errors.Join(s.importNothing(ctx), s.exportToOthers(ctx)); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// importNothing rejects the routes of routers. GoBGP applies the policy to the node's own
// routes too.
func (s *Speaker) importNothing(ctx context.Context) error {
	return s.filter(ctx, "own", api.PolicyDirection_POLICY_DIRECTION_IMPORT, &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
		api.RouteAction_ROUTE_ACTION_ACCEPT, api.RouteAction_ROUTE_ACTION_REJECT)
}

// filter makes GoBGP treat the routes of a direction that match in one way, and the others in
// another.
func (s *Speaker) filter(ctx context.Context, name string, direction api.PolicyDirection, match *api.Conditions, matching, others api.RouteAction) error {
	policy := &api.Policy{Name: name, Statements: []*api.Statement{{Name: name, Conditions: match, Actions: &api.Actions{RouteAction: matching}}}}
	if err := s.server.AddPolicy(ctx, &api.AddPolicyRequest{Policy: policy}); err != nil {
		return err
	}
	return s.server.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: &api.PolicyAssignment{
		Name: "global", Direction: direction, Policies: []*api.Policy{policy}, DefaultAction: others,
	}})
}

// SetPeers implements vip.Speaker.
func (s *Speaker) SetPeers(list []vip.Peer) (failed error) {
	wanted := map[netip.Addr]vip.Peer{}
	for _, p := range list {
		wanted[p.Address] = p
	}
	internal := s.internal()
	for address, p := range s.peers {
		if now, ok := wanted[address]; ok && same(now, p) {
			continue
		}
		s.set(address, nil) // before a change of the state reaches peerChanged
		failed = errors.Join(failed, s.remove(&p))
	}
	for address, p := range wanted {
		if _, there := s.peers[address]; there {
			continue
		}
		if err := s.add(address, &p); err != nil {
			s.set(address, nil)
			failed = errors.Join(failed, fmt.Errorf("session with %s: %w", p.Name(), err))
		}
	}
	if s.internal() != internal { // attributes depend on it
		routes := s.routes
		s.routes = nil
		failed = errors.Join(failed, s.Announce(routes))
	}
	return failed
}

func (s *Speaker) add(address netip.Addr, p *vip.Peer) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.set(address, p)
	s.hold(address)
	return s.addPeer(p)
}

// addPeer begins a session without BFD. The caller holds changing.
func (s *Speaker) addPeer(p *vip.Peer) error {
	return s.server.AddPeer(context.Background(), &api.AddPeerRequest{Peer: peer(p, false)})
}

// set sets or removes a peer. Only the job's goroutine changes peers.
func (s *Speaker) set(address netip.Addr, p *vip.Peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		delete(s.peers, address)
		delete(s.open, address)
		delete(s.ended, address)
		s.forget(address)
	} else {
		s.peers[address] = *p
	}
}

// internal reports whether a session is in one AS.
func (s *Speaker) internal() bool {
	for _, p := range s.peers {
		if p.Internal() {
			return true
		}
	}
	return false
}

// Announce implements vip.Speaker. A changed route replaces the old one, without a
// withdrawal in between.
func (s *Speaker) Announce(routes []vip.Route) error {
	var add, remove []*apiutil.Path
	for _, r := range routes {
		if slices.Contains(s.routes, r) {
			continue
		}
		p, err := s.path(r)
		if err != nil {
			return err
		}
		add = append(add, p)
	}
	for _, r := range s.routes {
		if slices.ContainsFunc(routes, func(now vip.Route) bool { return now.VIP == r.VIP }) {
			continue
		}
		p, err := s.path(r)
		if err != nil {
			return err
		}
		remove = append(remove, p)
	}
	if len(remove) > 0 {
		if err := s.server.DeletePath(apiutil.DeletePathRequest{Paths: remove}); err != nil {
			return fmt.Errorf("withdraw routes: %w", err)
		}
	}
	if len(add) > 0 {
		if _, err := s.server.AddPath(apiutil.AddPathRequest{Paths: add}); err != nil {
			return fmt.Errorf("announce routes: %w", err)
		}
	}
	s.routes = slices.Clone(routes)
	return nil
}

// Sessions implements vip.Speaker.
func (s *Speaker) Sessions() (out []state.BGPPeer) {
	s.changing.Lock()
	defer s.changing.Unlock()
	_ = s.server.ListPeer(context.Background(), &api.ListPeerRequest{}, func(p *api.Peer) {
		address, err := netip.ParseAddr(p.GetState().GetNeighborAddress())
		if err != nil {
			return
		}
		peer := state.BGPPeer{Address: address, Interface: s.peers[address].Interface, ASN: p.GetConf().GetPeerAsn(), State: word(p.GetState().GetSessionState().String())}
		if s.peers[address].BFD.On() {
			peer.BFD = bfdWord(p.GetState().GetBfdState().GetSessionState())
		}
		peer.Problem = s.problem(address, peer.BFD)
		if !peer.Established() {
			s.mu.Lock()
			peer.Problem = s.ended[address]
			s.mu.Unlock()
		}
		out = append(out, peer)
	})
	slices.SortFunc(out, func(a, b state.BGPPeer) int { return a.Address.Compare(b.Address) })
	return out
}

// Stop implements vip.Speaker: routers get a notification (Cease, RFC 4486).
func (s *Speaker) Stop() {
	s.unwatch()
	for address, p := range s.peers {
		s.set(address, nil)
		_ = s.remove(&p)
	}
	s.server.Stop()
}

// bfdWord returns the state of BFD, which is down while it does not run: without a session.
func bfdWord(s api.BfdSessionState) string {
	if s == api.BfdSessionState_BFD_SESSION_STATE_UNSPECIFIED {
		s = api.BfdSessionState_BFD_SESSION_STATE_DOWN
	}
	return word(s.String())
}

// word returns the last word of an enum's name.
func word(name string) string {
	return strings.ToLower(name[strings.LastIndex(name, "_")+1:])
}

// errorsOnly passes on GoBGP's errors: the job logs sessions.
type errorsOnly struct{ slog.Handler }

func (h errorsOnly) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

func (h errorsOnly) WithAttrs(a []slog.Attr) slog.Handler { return errorsOnly{h.Handler.WithAttrs(a)} }

func (h errorsOnly) WithGroup(name string) slog.Handler { return errorsOnly{h.Handler.WithGroup(name)} }
