package diff

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func impacts(before, after *v1alpha1.ClusterConfigSpec) string {
	var out []string
	for _, i := range clientImpacts(before, after) {
		out = append(append(out, i.What), i.Clients...)
	}
	return strings.Join(out, "\n")
}

// A move to BGP (docs/move-to-bgp.md) says of each step what clients see, and of none that two
// nodes have a VIP; a VIP that stays and changes its announcement has such a time.
func TestMoveToBGP(t *testing.T) {
	spec := func(name string) *v1alpha1.ClusterConfigSpec {
		data, err := os.ReadFile("../../golden/cases/" + name + "/expected/cluster.yaml")
		testkit.Must(t, err)
		c, err := v1alpha1.LoadClusterConfig(name, data)
		testkit.Must(t, err)
		return &c.Spec
	}
	both, moved := spec("bgp-beside-vrrp"), spec("bgp-old-by-vrrp")
	before, after := both.Elected(), moved.Announced()
	there := impacts(before, both)
	testkit.Contains(t, there, "VIP of api-new 198.51.100.5 is added", "2001:db8:100::6 answers once the nodes have the change, and routers accept it")
	swap := impacts(both, moved)
	testkit.Contains(t, swap, "VIP of api 192.0.2.5 becomes 198.51.100.5", "VIP of api-new 198.51.100.5 is removed\n198.51.100.5 continues to answer, as a VIP of api\n",
		"192.0.2.5 continues to answer, as a VIP of api-old; connections to it are opened again when its holder gets the change")
	end := impacts(moved, after)
	testkit.Contains(t, end, "VIP of ingress-old 192.0.2.6 is removed\n192.0.2.6 does not answer once all nodes have the change")
	back := impacts(moved, both)
	testkit.Contains(t, back, "VIP of api 198.51.100.5 becomes 192.0.2.5", "198.51.100.5 continues to answer, as a VIP of api-new\n")
	testkit.Lacks(t, there+swap+end+back, "split brain", "announcement of", "VRRP settings")

	stays := *moved
	stays.Groups = slices.Clone(moved.Groups)
	stays.Groups[0].VIPs = []netip.Addr{netip.MustParseAddr("192.0.2.5")}
	testkit.Contains(t, impacts(before, &stays), "announcement of 192.0.2.5 vrrp becomes bgp\nthe VIP does not answer, or two nodes have it")
}
