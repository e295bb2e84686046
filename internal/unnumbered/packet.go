package unnumbered

import (
	"bytes"
	"net"
)

// Of RFC 4861 sections 4.1, 4.2 and 4.6.
const (
	solicitation, advertisement             = 133, 134
	solicitationHeader, advertisementHeader = 8, 16
	sourceLinkLayer                         = 1
	// hops is the limit that no router has lowered: the sender is on the link.
	hops = 255
)

// node is an option by which nodes tell each other from routers on a link that they share. Type 253 is
// for experiments (RFC 4727 section 5.1.3), and hosts ignore options that they do not know.
var node = []byte("\xfd\x01vipgen")

// solicit returns a router solicitation.
func solicit(hardware net.HardwareAddr) []byte {
	return append([]byte{solicitationHeader - 1: 0, 0: solicitation}, linkLayer(hardware)...)
}

// advertise returns a router advertisement of a node: with a router lifetime of 0 no host takes it for
// a default router, and without prefixes none takes addresses.
func advertise(hardware net.HardwareAddr) []byte {
	return append(append([]byte{advertisementHeader - 1: 0, 0: advertisement}, linkLayer(hardware)...), node...)
}

func linkLayer(hardware net.HardwareAddr) []byte {
	if len(hardware) != 6 {
		return nil
	}
	return append([]byte{sourceLinkLayer, 1}, hardware...)
}

// sentByRouter reports whether b is the router advertisement of a router that is no node.
func sentByRouter(b []byte) bool {
	if len(b) < advertisementHeader || b[0] != advertisement || b[1] != 0 {
		return false
	}
	for b = b[advertisementHeader:]; len(b) > 0; b = b[int(b[1])*8:] {
		if len(b) < 2 || b[1] == 0 || len(b) < int(b[1])*8 || bytes.HasPrefix(b, node) {
			return false
		}
	}
	return true
}
