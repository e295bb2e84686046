package listener

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/mdlayher/socket"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// vrrpFilter is a filter for VRRP packets, from the network header on, also after IPv6
// extension headers. Packets with a VLAN tag are received on the interface of that VLAN
// as well.
var vrrpFilter = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
	bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 11},
	bpf.LoadExtension{Num: bpf.ExtProto},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 2},
	bpf.LoadAbsolute{Off: 9, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: vrrp.Protocol, SkipTrue: 6, SkipFalse: 7},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 6},
	bpf.LoadAbsolute{Off: 6, Size: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: vrrp.Protocol, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(vrrp.ExtensionHeaders[0]), SkipTrue: 2},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(vrrp.ExtensionHeaders[1]), SkipTrue: 1},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(vrrp.ExtensionHeaders[2]), SkipFalse: 1},
	bpf.RetConstant{Val: 4096},
	bpf.RetConstant{Val: 0},
}

// OnLinks listens on all links before any packet filter, so that it also receives adverts
// that the guard drops. It joins no multicast group. It needs CAP_NET_RAW.
func OnLinks() (*Listener, error) {
	conn, err := PacketSocket(unix.SOCK_DGRAM, unix.ETH_P_ALL, nil, vrrpFilter)
	if err != nil {
		return nil, fmt.Errorf("listening for advertisements: %w", err)
	}
	l := &Listener{packet: linkPacket}
	return l.attach(conn), nil
}

// PacketSocket opens a socket for packets of an Ethernet protocol that pass a filter, on
// a link, or on all links if nil: packet(7). kind is SOCK_RAW for frames, or SOCK_DGRAM
// for their content. Control messages hold the time of reception. It needs CAP_NET_RAW.
func PacketSocket(kind int, protocol uint16, link *net.Interface, filter []bpf.Instruction) (*socket.Conn, error) {
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, err
	}
	// Without a protocol the socket receives nothing before the filter is set.
	conn, err := socket.Socket(unix.AF_PACKET, kind, 0, "links", nil)
	if err != nil {
		return nil, privileged(err)
	}
	err = errors.Join(conn.SetBPF(program), conn.SetsockoptInt(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	if err == nil {
		at := &unix.SockaddrLinklayer{Protocol: networkOrder(protocol)}
		if link != nil {
			at.Ifindex = link.Index
		}
		err = conn.Bind(at)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// linkPacket parses a packet without link header from a packet socket: packet(7).
func linkPacket(b, _ []byte, from unix.Sockaddr) (vrrp.Packet, int, bool) {
	link, ok := from.(*unix.SockaddrLinklayer)
	if !ok || link.Pkttype == unix.PACKET_OUTGOING || link.Pkttype == unix.PACKET_OTHERHOST {
		return vrrp.Packet{}, 0, false
	}
	p, ok := vrrp.ParsePacket(b)
	return p, link.Ifindex, ok
}

func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
