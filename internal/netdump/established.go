package netdump

import (
	"encoding/binary"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Connection is an open TCP connection of this network namespace.
type Connection struct{ Own, Peer netip.AddrPort }

// Established returns the open connections of both families; IPv4 addresses are unmapped,
// whatever the socket's family is. The kernel filters the others, such as those in TIME-WAIT,
// of which there may be many more.
func Established() (out []Connection, err error) {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		list, err := List(func() ([]Connection, error) { return established(family) })
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// Of struct inet_diag_req_v2 and struct inet_diag_msg (linux/inet_diag.h).
const (
	requestSize, messageSize = 56, 72
	stateEstablished         = 1 // include/net/tcp_states.h
)

func established(family byte) ([]Connection, error) {
	data := make([]byte, requestSize)
	data[0], data[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(data[4:], 1<<stateEstablished)
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, unix.NLM_F_DUMP)
	request.AddRawData(data)
	messages, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return nil, err
	}
	out := make([]Connection, 0, len(messages))
	for _, m := range messages {
		if len(m) >= messageSize {
			out = append(out, Connection{addrPort(m[0], m[8:24], m[4:6]), addrPort(m[0], m[24:40], m[6:8])})
		}
	}
	return out, nil
}

func addrPort(family byte, address, port []byte) netip.AddrPort {
	if family == unix.AF_INET {
		address = address[:4]
	}
	a, _ := netip.AddrFromSlice(address)
	return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(port))
}
