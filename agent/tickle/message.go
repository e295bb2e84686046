package tickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
)

// A message holds all clients of a holder's VIPs of one family, in network order:
//
//	3 bytes "VTK", 1 byte 4 or 6, 4 bytes the length of the rest
//	for each port of a VIP: its address, 2 bytes the port, 2 bytes the number of clients
//	for each of these clients: its address, 2 bytes its port
//
// The answer is one byte. A new format needs another magic.
const (
	magic      = "VTK"
	headerSize = len(magic) + 1 + 4

	taken   = 1
	refused = 0

	// maxLength is the length for MaxClients with IPv6 addresses and 64 VIPs.
	maxLength = MaxClients*(16+2) + 64*maxPorts*(16+4)
)

var errMessage = errors.New("not a list of clients")

// encode returns the message for the VIPs of IPv4 (four) or IPv6, the same bytes for the
// same clients. VIPs without clients are left out: a message replaces the one before.
func (c Clients) encode(four bool) []byte {
	b := append([]byte(magic), family(four), 0, 0, 0, 0)
	for _, vip := range slices.SortedFunc(maps.Keys(c), netip.Addr.Compare) {
		if vip.Is4() != four {
			continue
		}
		for _, port := range slices.Sorted(maps.Keys(c[vip])) {
			b = append(b, vip.AsSlice()...)
			b = binary.BigEndian.AppendUint16(b, port)
			b = binary.BigEndian.AppendUint16(b, uint16(len(c[vip][port])))
			for _, client := range c[vip][port] {
				b = append(b, client.Addr().AsSlice()...)
				b = binary.BigEndian.AppendUint16(b, client.Port())
			}
		}
	}
	binary.BigEndian.PutUint32(b[len(magic)+1:], uint32(len(b)-headerSize))
	return b
}

func family(four bool) byte {
	if four {
		return 4
	}
	return 6
}

// readHeader reads the header of a message: its family, and the length of the rest.
func readHeader(r io.Reader) (four bool, length int, err error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return false, 0, err
	}
	n := binary.BigEndian.Uint32(h[len(magic)+1:])
	four = h[len(magic)] == family(true)
	if string(h[:len(magic)]) != magic || h[len(magic)] != family(four) || n > maxLength {
		return false, 0, errMessage
	}
	return four, int(n), nil
}

// decode decodes and validates the body of a message: only VIPs that this node may hold,
// and clients of their family.
func decode(b []byte, four bool, vips []VIP) (Clients, error) {
	size := 16
	if four {
		size = 4
	}
	out, count := Clients{}, 0
	// next reads an address and a port.
	next := func() (a netip.AddrPort, err error) {
		if len(b) < size+2 {
			return a, errMessage
		}
		ip, _ := netip.AddrFromSlice(b[:size])
		a = netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[size:]))
		b = b[size+2:]
		return a, nil
	}
	for len(b) > 0 {
		service, err := next()
		if err != nil || len(b) < 2 {
			return nil, errMessage
		}
		n := int(binary.BigEndian.Uint16(b))
		b = b[2:]
		vip := service.Addr()
		if !slices.ContainsFunc(vips, func(v VIP) bool { return v.Address == vip }) {
			return nil, fmt.Errorf("this node cannot hold the VIP %s", vip)
		}
		if out[vip] == nil {
			out[vip] = map[uint16][]netip.AddrPort{}
		}
		if _, twice := out[vip][service.Port()]; twice || service.Port() == 0 || len(out[vip]) == maxPorts {
			return nil, fmt.Errorf("port %d of %s is invalid or duplicate, or there are more than %d", service.Port(), vip, maxPorts)
		}
		if count += n; count > MaxClients || n*(size+2) > len(b) {
			return nil, fmt.Errorf("more than %d clients, or a truncated message", MaxClients)
		}
		clients := make([]netip.AddrPort, n)
		for i := range clients {
			if clients[i], err = next(); err != nil || !isRemote(clients[i]) {
				return nil, fmt.Errorf("invalid client %s of %s", clients[i], service)
			}
		}
		out[vip][service.Port()] = clients
	}
	return out, nil
}
