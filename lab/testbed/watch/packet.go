package watch

import (
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// packet holds the claims in a frame.
type packet struct {
	advert  *vrrp.Advert // nil if it is none
	claimed netip.Addr   // address that the sender claims by ARP or neighbour discovery
}

// parser parses frames, one at a time.
type parser struct {
	ethernet layers.Ethernet
	arp      layers.ARP
	ip4      layers.IPv4
	ip6      layers.IPv6
	icmp6    layers.ICMPv6
	neighbor layers.ICMPv6NeighborAdvertisement

	chain *gopacket.DecodingLayerParser
	found []gopacket.LayerType
}

func newParser() *parser {
	p := &parser{}
	p.chain = gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet,
		&p.ethernet, &p.arp, &p.ip4, &p.ip6, &p.icmp6, &p.neighbor)
	p.chain.IgnoreUnsupported = true // the payload of IP, if it is VRRP
	return p
}

// parse returns false for frames without a claim and for malformed ones.
func (p *parser) parse(frame []byte) (packet, bool) {
	if err := p.chain.DecodeLayers(frame, &p.found); err != nil || len(p.found) == 0 {
		return packet{}, false
	}
	switch p.found[len(p.found)-1] {
	case layers.LayerTypeARP:
		// A host that sends a request or an answer from an address has it. A probe is sent from
		// 0.0.0.0 (RFC 5227, section 1.1).
		return claim(p.arp.SourceProtAddress)
	case layers.LayerTypeICMPv6NeighborAdvertisement:
		return claim(p.neighbor.TargetAddress)
	case layers.LayerTypeIPv4:
		return advert(p.ip4.Protocol, p.ip4.SrcIP, p.ip4.Payload)
	case layers.LayerTypeIPv6:
		return advert(p.ip6.NextHeader, p.ip6.SrcIP, p.ip6.Payload)
	}
	return packet{}, false
}

func claim(address []byte) (packet, bool) {
	addr, ok := netip.AddrFromSlice(address)
	return packet{claimed: addr.Unmap()}, ok
}

func advert(protocol layers.IPProtocol, source, payload []byte) (packet, bool) {
	addr, ok := netip.AddrFromSlice(source)
	if !ok || protocol != vrrp.Protocol {
		return packet{}, false
	}
	a, err := vrrp.ParseAdvert(addr.Unmap(), payload)
	return packet{advert: a}, err == nil
}
