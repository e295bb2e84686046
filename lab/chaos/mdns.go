package chaos

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"

	miekg "github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/attack"
)

// mdnsGroups are the multicast DNS destinations (RFC 6762 section 3).
var mdnsGroups = []netip.AddrPort{netip.MustParseAddrPort("224.0.0.251:5353"), netip.MustParseAddrPort("[ff02::fb]:5353")}

// mdnsPacket is an mDNS packet about hosts that do not exist.
type mdnsPacket struct {
	name string
	// ttl is the TTL of each record in seconds, hosts the number of hosts in a packet, with three
	// records each.
	ttl   uint32
	hosts int
}

// mdnsKinds are packets that attack an mDNS cache: records whose expiry overflows into the past,
// and as many records as fit into a packet.
var mdnsKinds = []mdnsPacket{
	{name: "endless-ttl", ttl: math.MaxUint32, hosts: 20},
	{name: "many-records", ttl: 75 * 60, hosts: 133},
}

// packets returns n packets about different hosts, for both families.
func (m mdnsPacket) packets(n int) (out []attack.Packet, err error) {
	for i := range n {
		data, err := m.message(i * m.hosts).Pack()
		if err != nil {
			return nil, fmt.Errorf("packing mDNS records: %w", err)
		}
		for _, to := range mdnsGroups {
			out = append(out, attack.Packet{To: to, Data: data})
		}
	}
	return out, nil
}

// message returns records for the hosts from a number on: each has an address and is a workstation
// (RFC 6762 section 18 has the header of a response).
func (m mdnsPacket) message(first int) *miekg.Msg {
	const service = "_workstation._tcp.local."
	msg := &miekg.Msg{MsgHdr: miekg.MsgHdr{Response: true, Authoritative: true}, Compress: true}
	for i := first; i < first+m.hosts; i++ {
		header := func(name string, kind uint16) miekg.RR_Header {
			return miekg.RR_Header{Name: name, Rrtype: kind, Class: miekg.ClassINET, Ttl: m.ttl}
		}
		host := "h" + strconv.FormatInt(int64(i), 36) + "."
		msg.Answer = append(msg.Answer,
			&miekg.A{Hdr: header(host+"local.", miekg.TypeA), A: []byte{198, 18, byte(i >> 8), byte(i)}},
			&miekg.TXT{Hdr: header(host+service, miekg.TypeTXT), Txt: []string{""}},
			&miekg.PTR{Hdr: header(service, miekg.TypePTR), Ptr: host + service},
		)
	}
	return msg
}
