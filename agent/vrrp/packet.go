package vrrp

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/mdlayher/socket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// protocol is that of VRRP: RFC 9568, section 5.1.
const protocol = 112

// Extension headers of IPv6 that may come before an advert: RFC 8200, section 4.
const (
	hopByHop    = 0
	routing     = 43
	destination = 60
)

// wanted lets VRRP pass, from the network header on, and IPv6 with extension headers.
// What has a VLAN tag comes once more on the interface of that VLAN.
var wanted = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 11},
	bpf.LoadExtension{Num: bpf.ExtProto},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 2},
	bpf.LoadAbsolute{Off: 9, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocol, SkipTrue: 6, SkipFalse: 7},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 6},
	bpf.LoadAbsolute{Off: 6, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocol, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: hopByHop, SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: routing, SkipTrue: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: destination, SkipFalse: 1},
	bpf.RetConstant{Val: 4096},
	bpf.RetConstant{Val: 0},
}

// openLinks opens a socket that receives what wanted lets pass, of all links.
func openLinks() (*socket.Conn, error) {
	filter, err := bpf.Assemble(wanted)
	if err != nil {
		return nil, err
	}
	// Without a protocol it receives nothing, so that nothing passes by the filter.
	conn, err := socket.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0, "links", nil)
	if err != nil {
		return nil, err
	}
	if err = conn.SetBPF(filter); err == nil {
		err = conn.Bind(&unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ALL)})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// packet is one that was received.
type packet struct {
	source, destination netip.Addr
	link                int
	payload             []byte
}

// parse reads an IP packet that has VRRP in it: RFC 791 section 3.1, RFC 8200
// sections 3 and 4. Of one in fragments nothing is read.
func parse(b []byte) (p packet, ok bool) {
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		size, length := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		if b[9] != protocol || size < 20 || size > length || length > len(b) || binary.BigEndian.Uint16(b[6:])&0x3fff != 0 {
			return p, false
		}
		p.source, _ = netip.AddrFromSlice(b[12:16])
		p.destination, _ = netip.AddrFromSlice(b[16:20])
		p.payload = b[size:length]
		return p, true
	case len(b) >= 40 && b[0]>>4 == 6:
		p.source, _ = netip.AddrFromSlice(b[8:24])
		p.destination, _ = netip.AddrFromSlice(b[24:40])
		length := 40 + int(binary.BigEndian.Uint16(b[4:]))
		if length > len(b) {
			return p, false
		}
		next, rest := b[6], b[40:length]
		for next == hopByHop || next == routing || next == destination {
			if len(rest) < 2 || len(rest) < 8*(1+int(rest[1])) {
				return p, false
			}
			next, rest = rest[0], rest[8*(1+int(rest[1])):]
		}
		p.payload = rest
		return p, next == protocol
	}
	return p, false
}
