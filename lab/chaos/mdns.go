package chaos

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"

	miekg "github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/attack"
)

// mdnsGroups are where multicast DNS goes (RFC 6762 section 3).
var mdnsGroups = []netip.AddrPort{netip.MustParseAddrPort("224.0.0.251:5353"), netip.MustParseAddrPort("[ff02::fb]:5353")}

// mdnsPacket is what a neighbour can say of hosts that are not there.
type mdnsPacket struct {
	name string
	// ttl of each record in seconds, hosts how many one packet is about, with three
	// records each.
	ttl   uint32
	hosts int
}

// mdnsKinds are packets against what is known by multicast DNS: records that end in the
// past where their time overflows, and as many in a packet as go into one.
var mdnsKinds = []mdnsPacket{
	{name: "endless-ttl", ttl: math.MaxUint32, hosts: 20},
	{name: "many-records", ttl: 75 * 60, hosts: 133},
}

// packets returns so many of them, about different hosts, for both families.
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

// message is about the hosts from a number on: each has an address, and is a
// workstation (RFC 6762 section 18 says what is set in a response).
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
