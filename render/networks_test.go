package render

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Networks of hosts stand where the first of their family did: the order decides the primary family.
func TestReplaceFamily(t *testing.T) {
	for _, tt := range []struct{ list, found, want string }{
		{"192.0.2.0/24 2001:db8::/64", "198.51.100.0/24", "198.51.100.0/24 2001:db8::/64"},
		{"2001:db8::/64 192.0.2.0/24 203.0.113.0/24", "198.51.100.0/24", "2001:db8::/64 198.51.100.0/24"},
		{"192.0.2.0/24 203.0.113.0/24 2001:db8::/64", "2001:db8:1::/64 2001:db8:2::/64", "192.0.2.0/24 203.0.113.0/24 2001:db8:1::/64 2001:db8:2::/64"},
		{"192.0.2.0/24", "2001:db8::/64", "192.0.2.0/24 2001:db8::/64"},
	} {
		networks := func(text string) []netip.Prefix { return lists.Map(strings.Fields(text), netip.MustParsePrefix) }
		testkit.Equal(t, tt.want, lists.Join(replaceFamily(networks(tt.list), networks(tt.found)), " "))
	}
}
