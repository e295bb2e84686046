package speaker

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	vip "github.com/vipgen/vipgen/agent/bgp"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestPath: routers of another AS compare the length of the path, those of the same one the
// local preference, in whose path the node's AS would look like a loop.
func TestPath(t *testing.T) {
	router := netip.MustParseAddr("192.0.2.1")
	for name, tt := range map[string]struct {
		asn      uint32 // of the router
		route    vip.Route
		has, not []string
	}{
		"best":         {64601, vip.Route{VIP: netip.MustParseAddr("198.51.100.5")}, []string{"{Origin: ?}", "{Nexthop: 0.0.0.0}", "{Med: 0}", "{Communities: 1:2}"}, []string{"AsPath", "LocalPref"}},
		"worse":        {64601, vip.Route{VIP: netip.MustParseAddr("198.51.100.5"), Preference: 2}, []string{"{AsPath: 64512 64512}", "{Med: 200}"}, []string{"LocalPref"}},
		"bootstrap":    {64601, vip.Route{VIP: netip.MustParseAddr("2001:db8::5"), First: true}, []string{"{Origin: i}", "2001:db8::5/128"}, []string{"AsPath"}},
		"one AS":       {64512, vip.Route{VIP: netip.MustParseAddr("198.51.100.5")}, []string{"{LocalPref: 200}"}, []string{"AsPath"}},
		"one AS worse": {64512, vip.Route{VIP: netip.MustParseAddr("198.51.100.5"), Preference: 3}, []string{"{LocalPref: 188}"}, []string{"AsPath"}},
	} {
		s := &Speaker{options: vip.SpeakerOptions{ASN: 64512, Communities: []uint32{1<<16 | 2}},
			peers: map[netip.Addr]vip.Peer{router: {BGPPeer: v1alpha1.BGPPeer{ASN: tt.asn}, LocalASN: 64512}}}
		p, err := s.path(tt.route)
		testkit.Must(t, err)
		var text []string
		for _, a := range p.Attrs {
			text = append(text, fmt.Sprint(a))
		}
		testkit.Contains(testkit.In(t, name), strings.Join(text, " "), tt.has...)
		testkit.Lacks(testkit.In(t, name), strings.Join(text, " "), tt.not...)
	}
}

// TestFamilies: a session over IPv6 carries IPv4 routes only if that is configured.
func TestFamilies(t *testing.T) {
	for _, tt := range []struct {
		router   string
		extended bool
		want     string
	}{
		{"192.0.2.1", false, "AFI_IP"},
		{"2001:db8::1", false, "AFI_IP6"},
		{"2001:db8::1", true, "AFI_IP AFI_IP6"},
	} {
		p := peer(&vip.Peer{BGPPeer: v1alpha1.BGPPeer{Address: netip.MustParseAddr(tt.router), ExtendedNextHop: tt.extended}}, false)
		var got []string
		for _, a := range p.AfiSafis {
			testkit.Equal(t, a.Config.Family.Afi, a.PrefixLimits.Family.Afi)
			got = append(got, a.Config.Family.Afi.String())
		}
		testkit.Equal(t, tt.want, strings.Join(got, " "))
	}
}
