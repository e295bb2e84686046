package speaker

import (
	"net/netip"
	"reflect"
	"time"

	"github.com/osrg/gobgp/v4/api"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	vip "github.com/vipgen/vipgen/agent/bgp"
)

const (
	// maxPrefixes ends the session with a router that sends routes by mistake: they are
	// not used, but take memory.
	maxPrefixes = 10_000
	// retryAfter is the time between attempts to open a session, in seconds: the shortest that
	// GoBGP has.
	retryAfter = 2
	// Steps between two preferences. Routers compare the AS path before the MED, and the
	// MED of one neighbouring AS only; in one AS the local preference decides.
	medStep       = 100
	bestLocalPref = 200
	localPrefStep = 4 // above routers' default of 100 for all but the worst of nodes with places
)

func same(a, b vip.Peer) bool { return reflect.DeepEqual(a, b) }

// peer returns the settings of a session, with BFD or without.
func peer(p *vip.Peer, withBFD bool) *api.Peer {
	hold := time.Duration(p.HoldTime) / time.Second
	out := &api.Peer{
		Conf: &api.PeerConf{NeighborAddress: p.Address.String(), PeerAsn: p.ASN, LocalAsn: p.LocalASN, AuthPassword: p.Password},
		Timers: &api.Timers{Config: &api.TimersConfig{
			HoldTime: uint64(hold), KeepaliveInterval: uint64(max(hold/3, 1)), ConnectRetry: retryAfter,
		}},
	}
	for _, a := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		if p.Carries(a) { // GoBGP offers IPv6 next hops for IPv4 by itself
			f := family(a)
			out.AfiSafis = append(out.AfiSafis, &api.AfiSafi{
				Config:       &api.AfiSafiConfig{Family: f, Enabled: true},
				PrefixLimits: &api.PrefixLimit{Family: f, MaxPrefixes: maxPrefixes},
			})
		}
	}
	switch {
	case p.Multihop > 0 && !p.Internal():
		out.EbgpMultihop = &api.EbgpMultihop{Enabled: true, MultihopTtl: uint32(p.Multihop)}
	case p.TTLSecurity:
		out.TtlSecurity = &api.TtlSecurity{Enabled: true, TtlMin: 255}
	}
	if p.BFD.On() && withBFD {
		every := uint32(time.Duration(p.BFD.Interval) / time.Microsecond)
		out.Bfd = &api.BfdPeerConfig{
			Enabled: true, DesiredMinimumTxInterval: every, RequiredMinimumReceive: every, DetectionMultiplier: uint32(p.BFD.Multiplier),
		}
	}
	return out
}

func family(a netip.Addr) *api.Family {
	f := &api.Family{Afi: api.Family_AFI_IP, Safi: api.Family_SAFI_UNICAST}
	if a.Is6() {
		f.Afi = api.Family_AFI_IP6
	}
	return f
}

// path returns a host route by way of this node: the unspecified next hop stands for its
// address in each session.
func (s *Speaker) path(r vip.Route) (*apiutil.Path, error) {
	nlri, err := bgp.NewIPAddrPrefix(netip.PrefixFrom(r.VIP, r.VIP.BitLen()))
	if err != nil {
		return nil, err
	}
	// A bootstrap host precedes nodes by its origin, which routers compare after the
	// length of the AS path.
	origin := uint8(bgp.BGP_ORIGIN_ATTR_TYPE_INCOMPLETE)
	if r.First {
		origin = bgp.BGP_ORIGIN_ATTR_TYPE_IGP
	}
	attributes := []bgp.PathAttributeInterface{bgp.NewPathAttributeOrigin(origin)}
	if s.internal() {
		// A router would take its own AS in the path for a loop.
		attributes = append(attributes, bgp.NewPathAttributeLocalPref(uint32(bestLocalPref-localPrefStep*r.Preference)))
	} else if r.Preference > 0 {
		var longer []uint32
		for range r.Preference {
			longer = append(longer, s.options.ASN)
		}
		attributes = append(attributes, bgp.NewPathAttributeAsPath([]bgp.AsPathParamInterface{bgp.NewAs4PathParam(bgp.BGP_ASPATH_ATTR_TYPE_SEQ, longer)}))
	}
	attributes = append(attributes, bgp.NewPathAttributeMultiExitDisc(uint32(medStep*r.Preference)))
	if len(s.options.Communities) > 0 {
		attributes = append(attributes, bgp.NewPathAttributeCommunities(s.options.Communities))
	}
	out := &apiutil.Path{Family: bgp.RF_IPv4_UC, Nlri: nlri}
	if r.VIP.Is4() {
		hop, err := bgp.NewPathAttributeNextHop(netip.IPv4Unspecified())
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, hop)
	} else {
		out.Family = bgp.RF_IPv6_UC
		reach, err := bgp.NewPathAttributeMpReachNLRI(bgp.RF_IPv6_UC, []bgp.PathNLRI{{NLRI: nlri}}, netip.IPv6Unspecified())
		if err != nil {
			return nil, err
		}
		attributes = append(attributes, reach)
	}
	out.Attrs = attributes
	return out, nil
}
