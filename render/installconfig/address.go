package installconfig

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// usable reports an address that neither a VIP nor a host can have.
func (r *reader) usable(a netip.Addr, field string) bool {
	why := v1alpha1.UsableAddress(a)
	if why == "" {
		return true
	}
	r.add(problem.BadAddress, field, problem.Quote(a.String())+", "+why, "a unicast IP address", "")
	return false
}

// Family returns "IPv4" or "IPv6".
func Family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
