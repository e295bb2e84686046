package bgp

import (
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestSessionsWith: a connection with a router at the port of BGP, of either end, is a session.
// Other ports and other hosts are not.
func TestSessionsWith(t *testing.T) {
	routers := []v1alpha1.BGPPeer{{Address: netip.MustParseAddr("192.0.2.1")}, {Address: netip.MustParseAddr("2001:db8::1")}, {Interface: "ens3"}}
	for _, tt := range []struct {
		own, peer string
		want      int
	}{
		{"192.0.2.10:40000", "192.0.2.1:179", 1}, {"[2001:db8::10]:179", "[2001:db8::1]:40000", 1},
		{"192.0.2.10:40000", "192.0.2.1:443", 0}, {"192.0.2.10:179", "192.0.2.2:40000", 0},
		{"[fe80::10]:40000", "[fe80::1]:179", 1},
	} {
		testkit.Equal(testkit.In(t, tt.own, tt.peer), tt.want, len(sessionsWith([]netdump.Connection{connection(tt.own, tt.peer)}, anyOf(routers))))
	}
}

func connection(own, peer string) netdump.Connection {
	return netdump.Connection{Own: netip.MustParseAddrPort(own), Peer: netip.MustParseAddrPort(peer)}
}

// TestLaterSpeaker: a connection that stays while the router has no session with the job is another
// speaker's. The job's own are new ones each time, and others do not count.
func TestLaterSpeaker(t *testing.T) {
	const router = "192.0.2.1:179"
	for name, tt := range map[string]struct {
		state string
		turns []string // own ends of a connection
		want  bool
	}{
		"stays":               {"active", []string{"192.0.2.10:1", "192.0.2.10:1"}, true},
		"attempts of the job": {"idle", []string{"192.0.2.10:1", "192.0.2.10:2"}, false},
		"returns":             {"idle", []string{"192.0.2.10:1", "", "192.0.2.10:1"}, false},
		"the job's session":   {"established", []string{"192.0.2.10:1", "192.0.2.10:1"}, false},
		"begins":              {"opensent", []string{"192.0.2.10:1", "192.0.2.10:1"}, false},
	} {
		j, err := &Job{}, error(nil)
		var peers []state.BGPPeer
		for _, own := range tt.turns {
			peers = []state.BGPPeer{{Address: netip.MustParseAddr("192.0.2.1"), State: tt.state}}
			err = j.laterSpeaker(peers, func() (out []netdump.Connection, _ error) {
				if own != "" {
					out = append(out, connection(own, router))
				}
				return out, nil
			})
		}
		testkit.Equal(testkit.In(t, name), []bool{tt.want, tt.want}, []bool{err != nil, peers[0].Problem == state.OtherSpeaker})
	}
}

// TestRouterID: a node keeps its identifier while it has no address, and takes another one with another address.
func TestRouterID(t *testing.T) {
	addresses := func(list ...string) (out []netip.Addr) {
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	j := &Job{}
	first := j.routerID("n1", addresses("2001:db8::10"))
	if !first.Is4() || first == j.routerID("n2", nil) {
		t.Errorf("%v", first)
	}
	testkit.Equal(t, "192.0.2.10", j.routerID("n1", addresses("2001:db8::10", "192.0.2.10")).String())
	j.speaker, j.options.RouterID = &speaker{}, netip.MustParseAddr("192.0.2.10")
	testkit.Equal(t, "192.0.2.10", j.routerID("n1", nil).String())
	testkit.Equal(t, "192.0.2.11", j.routerID("n1", addresses("192.0.2.11")).String())
}

type speaker struct{ Speaker }
