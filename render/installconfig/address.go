package installconfig

import (
	"net/netip"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// broadcast is the limited broadcast address (RFC 919 section 7).
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// unusable says why neither a VIP nor a host can have an address, or "".
func unusable(a netip.Addr) string {
	switch {
	case a.Zone() != "":
		return "an address with a zone"
	case a.Is4In6():
		return "an IPv4 address written as IPv6"
	case a.IsUnspecified():
		return "the unspecified address"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a multicast address"
	case a.IsLinkLocalUnicast():
		return "a link-local address"
	case a == broadcast:
		return "the broadcast address"
	}
	return ""
}

// usable reports an address that neither a VIP nor a host can have.
func (r *reader) usable(a netip.Addr, field string) bool {
	why := unusable(a)
	if why == "" {
		return true
	}
	r.add(problem.BadAddress, field, source.Quote(a.String())+", "+why, "a unicast IP address", "")
	return false
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}
