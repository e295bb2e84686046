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

// wanted lets VRRP pass, from the network header on, and IPv6 with extension headers.
// What has a VLAN tag comes once more on the interface of that VLAN.
var wanted = []bpf.Instruction{
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

// OnLinks listens for what comes in over any link, before any packet filter: also what
// the guard keeps from keepalived. It joins no multicast group. It takes CAP_NET_RAW.
func OnLinks() (*Listener, error) {
	conn, err := PacketSocket(unix.SOCK_DGRAM, unix.ETH_P_ALL, nil, wanted)
	if err != nil {
		return nil, fmt.Errorf("listening for adverts: %w", err)
	}
	l := &Listener{packet: linkPacket}
	return l.on(conn), nil
}

// PacketSocket opens a socket that receives what a filter lets pass of a protocol of
// Ethernet, from a link, or from all where that is nil: packet(7). kind is SOCK_RAW for
// frames, or SOCK_DGRAM for what is in them. Control messages say when each came. It takes
// CAP_NET_RAW.
func PacketSocket(kind int, protocol uint16, link *net.Interface, filter []bpf.Instruction) (*socket.Conn, error) {
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, err
	}
	// Without a protocol it receives nothing, so that nothing passes by the filter.
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

// linkPacket reads what packet sockets give without the link's header: packet(7).
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
