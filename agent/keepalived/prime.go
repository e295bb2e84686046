package keepalived

import (
	"net"
	"net/netip"
	"time"
)

// discard is the port of the service that ignores what it gets (RFC 863). Nothing
// need listen there.
const discard = 9

// primeNeighbours lets the peers learn this node's link address, by asking for theirs. The
// holder's adverts to a node that was away wait up to a second for that, which is
// several intervals of a fast profile: keepalived would take the VIP over before
// it hears the first.
func primeNeighbours(peers []netip.Addr) {
	for _, p := range peers {
		c, err := net.DialTimeout("udp", netip.AddrPortFrom(p, discard).String(), time.Second)
		if err != nil {
			continue // no route: no advert comes that way either
		}
		c.Write([]byte{0})
		c.Close()
	}
}
