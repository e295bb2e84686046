package speaker

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	vip "github.com/vipgen/vipgen/agent/bgp"
)

// GoBGP 4.8.0 locks up when BFD of a router goes down while BFD of several sessions is changed.
// Three goroutines wait for each other, without a timeout:
//
//   - The main loop (BgpServer.Serve) hands each start and end of BFD to the BFD server through a
//     channel that holds one (bfdServer.AddPeer and DeletePeer): in UpdatePeer (updateBfdPeer), and
//     in DeletePeer and StopBgp for every session, with BFD or without (stopNeighbor).
//   - The BFD server (bfdServer.loop, deleteBfdPeer) waits until the goroutine of the router's BFD
//     ends (bfdPeer.Stop).
//   - That goroutine (bfdPeer.loop) waits for the main loop to reset the session (ResetPeer,
//     mgmtOperation), when BFD expires or the router ends it (expiry, remoteDown).
//
// The first end of BFD occupies the BFD server, the second one fills the channel, and at the third
// one the main loop waits. Sessions that are lost, removed or stopped together suffice. Every
// call of GoBGP needs the main loop, so the node's routes no longer follow its health.
//
// Hence a change of BFD waits until the BFD server has taken the one before. The channel is
// empty then, the main loop never waits for it, and a goroutine that resets a session continues.
// ListBfdPeer shows what the BFD server has taken, without the main loop: deleteBfdPeer removes a
// router from the list before it waits.

// peerChanged runs BFD with a router while its session is established, and lets it have the
// routes. GoBGP resets a session whenever BFD expires, also BFD that has never been up, as
// before the router's session makes the router begin its BFD.
func (s *Speaker) peerChanged(e *apiutil.WatchEventMessage_PeerEvent, _ time.Time) {
	if e.Type != apiutil.PEER_EVENT_STATE {
		return
	}
	now := &e.Peer.State
	router, established := now.NeighborAddress, now.SessionState == bgp.BGP_FSM_ESTABLISHED
	if s.changed(router, now) && now.AdminState == api.PeerState_ADMIN_STATE_UP {
		s.hold(router)
		if err := s.reopen(router); err != nil {
			s.options.Log.Error("cannot open a session again", "peer", router, "error", err)
		}
		return
	}
	if err := s.setBFD(router, established); err != nil {
		s.options.Log.Error("cannot change BFD of a session", "peer", router, "error", err)
	}
	if established {
		s.begin(router)
	} else {
		s.hold(router)
	}
}

// changed keeps the state of a session, and reports whether it was established, and has ended.
func (s *Speaker) changed(router netip.Addr, now *apiutil.PeerState) (lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.peers[router]; !known {
		return false
	}
	if now.SessionState == bgp.BGP_FSM_IDLE && now.DisconnectReason != api.PeerState_DISCONNECT_REASON_UNSPECIFIED { // it was not removed
		s.ended[router] = ending(now.DisconnectReason, now.DisconnectMessage)
	}
	established := now.SessionState == bgp.BGP_FSM_ESTABLISHED
	lost = s.open[router] && !established
	s.open[router] = established
	return lost
}

// reopen replaces a session that has ended by a new one, which GoBGP opens at once. In the old one
// it would wait 5 s if the router has ended it (holdtimeIdle of fsm.go, a constant).
func (s *Speaker) reopen(router netip.Addr) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	p, known := s.peers[router]
	s.mu.Unlock()
	if !known {
		return nil
	}
	return errors.Join(s.delete(&p), s.addPeer(&p))
}

// setBFD starts or ends BFD of a session that has it.
func (s *Speaker) setBFD(router netip.Addr, on bool) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	p, known := s.peers[router]
	s.mu.Unlock()
	if !known || !p.BFD.On() || s.hasBFD(router) == on {
		return nil
	}
	return s.changeBFD(router, on, s.update(peer(&p, on)))
}

func (s *Speaker) remove(p *vip.Peer) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	return s.delete(p)
}

// delete ends a session. GoBGP ends BFD also of a session without: it is started first, because
// the BFD server shows the end of no other. The caller holds changing.
func (s *Speaker) delete(p *vip.Peer) error {
	if !s.hasBFD(p.Address) {
		with := peer(p, false)
		with.Bfd = &api.BfdPeerConfig{Enabled: true}
		if err := s.changeBFD(p.Address, true, s.update(with)); err != nil {
			return err
		}
	}
	return s.changeBFD(p.Address, false, func(ctx context.Context) error {
		return s.server.DeletePeer(ctx, &api.DeletePeerRequest{Address: p.Address.String()})
	})
}

func (s *Speaker) update(to *api.Peer) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.server.UpdatePeer(ctx, &api.UpdatePeerRequest{Peer: to})
		return err
	}
}

// changeBFD starts or ends BFD by a change of a session, and waits until the BFD server has taken
// it. The caller holds changing.
func (s *Speaker) changeBFD(router netip.Addr, on bool, by func(context.Context) error) error {
	if err := by(context.Background()); err != nil {
		return err
	}
	for s.hasBFD(router) != on {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// hasBFD reports whether BFD with a router runs.
func (s *Speaker) hasBFD(router netip.Addr) bool { return s.bfd(router) != nil }

// bfd returns the state of BFD with a router; nil if it does not run.
func (s *Speaker) bfd(router netip.Addr) (out *api.BfdPeerState) {
	s.server.ListBfdPeer(context.Background(), func(address string, state *api.BfdPeerState) {
		if address == router.String() {
			out = state
		}
	})
	return out
}
