package speaker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bfd"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	vip "github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestBFDDown: sessions are changed and ended while BFD of their routers goes down. Without
// changeBFD the third change of BFD locks GoBGP.
func TestBFDDown(t *testing.T) {
	socket, err := net.ListenPacket("udp", fmt.Sprintf(":%d", v1alpha1.BFDPort))
	if err != nil {
		testkit.CannotRun(t, "another program has the port of BFD: "+err.Error())
	}
	socket.Close()
	lose := func(s *Speaker, router netip.Addr) {
		s.peerChanged(&apiutil.WatchEventMessage_PeerEvent{Type: apiutil.PEER_EVENT_STATE,
			Peer: apiutil.Peer{State: apiutil.PeerState{NeighborAddress: router, SessionState: bgp.BGP_FSM_IDLE}}}, time.Now())
	}
	for name, tt := range map[string]struct {
		withBFD int // of four routers
		change  func(*Speaker, []netip.Addr)
	}{
		"sessions lost": {4, func(s *Speaker, routers []netip.Addr) {
			var changes sync.WaitGroup
			for _, r := range routers {
				changes.Go(func() { lose(s, r) })
			}
			changes.Wait()
		}},
		"routers without BFD removed": {1, func(s *Speaker, routers []netip.Addr) { lose(s, routers[0]); s.SetPeers(nil) }},
		"stop":                        {4, func(s *Speaker, _ []netip.Addr) { s.Stop() }},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gate{opened: make(chan struct{})}
			s, err := start(vip.SpeakerOptions{ASN: 64512, RouterID: netip.MustParseAddr("192.0.2.10"), Log: slog.New(g)}, g)
			testkit.Must(t, err)
			routers := routers(t, s, tt.withBFD)
			g.await(t, routers[:tt.withBFD])
			g.changes.Store(0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				tt.change(s, routers)
				s.Stop()
			}()
			time.AfterFunc(time.Second/2, g.open) // changes that wait for each other are fewer
			select {
			case <-done:
			case <-time.After(30 * time.Second):
				t.Fatalf("GoBGP has locked after %d changes", g.changes.Load())
			}
		})
	}
}

// routers adds four routers without sessions, and runs BFD with the first ones.
func routers(t *testing.T, s *Speaker, withBFD int) (out []netip.Addr) {
	t.Helper()
	var peers []vip.Peer
	for i := range 4 {
		on := i < withBFD
		out = append(out, netip.AddrFrom4([4]byte{127, 0, 0, byte(10 + i)}))
		peers = append(peers, vip.Peer{LocalASN: 64512, BGPPeer: v1alpha1.BGPPeer{
			Address: out[i], ASN: 64601, HoldTime: v1alpha1.Duration(9 * time.Second),
			BFD: v1alpha1.BFD{Enabled: &on, Interval: v1alpha1.Duration(time.Second), Multiplier: 3},
		}})
	}
	testkit.Must(t, s.SetPeers(peers))
	for _, r := range out {
		testkit.Must(t, s.setBFD(r, true))
	}
	return out
}

// gate is GoBGP's log. It holds goroutines of BFD that is down before they reset their session,
// until the third change of a session begins, whatever waits for them then.
type gate struct {
	down, changes atomic.Int32
	once          sync.Once
	opened        chan struct{}
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

func (g *gate) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "Remote peer signaled BFD down":
		g.down.Add(1)
		<-g.opened
	case "Update BFD configuration", "Delete a peer configuration":
		if g.changes.Add(1) == 3 && g.down.Load() > 0 {
			g.open()
		}
	}
	return nil
}

func (g *gate) Enabled(context.Context, slog.Level) bool { return true }

func (g *gate) WithAttrs([]slog.Attr) slog.Handler { return g }

func (g *gate) WithGroup(string) slog.Handler { return g }

// await sends what routers send whose BFD comes up and is then switched off, until the goroutines of
// all wait at the gate.
func (g *gate) await(t *testing.T, routers []netip.Addr) {
	t.Helper()
	var open []net.Conn
	for _, r := range routers {
		d := net.Dialer{LocalAddr: &net.UDPAddr{IP: r.AsSlice()}}
		conn, err := d.Dial("udp", fmt.Sprintf("127.0.0.1:%d", v1alpha1.BFDPort))
		testkit.Must(t, err)
		defer conn.Close()
		open = append(open, conn)
	}
	testkit.AwaitWithin(t, 30*time.Second, "BFD to go down", func() bool {
		for _, state := range []bfd.StateType{bfd.StateDown, bfd.StateAdminDown} {
			packet, err := (&bfd.BFDHeader{Version: 1, State: state, DetectTimeMultiplier: 3, MyDiscriminator: 1, DesiredMinTxInterval: 60_000_000, RequiredMinRxInterval: 60_000_000}).MarshalBinary()
			testkit.Must(t, err)
			for _, conn := range open {
				conn.Write(packet) // refused until GoBGP listens
			}
		}
		return int(g.down.Load()) == len(routers)
	})
}
