package netns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// DialContext connects from inside the node's namespace, like net.Dialer, to an address and
// port such as "192.0.2.5:6443"; a name is refused, as it would be resolved outside.
//
// A socket stays in the namespace that it was opened in. So a thread is inside only while
// opening, and any number of connections can wait at once.
func (n *Node) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return n.DialFrom(ctx, 0, network, address)
}

// DialFrom is DialContext from a TCP port of the node's, or from any if it is 0.
func (n *Node) DialFrom(ctx context.Context, port uint16, network, address string) (conn net.Conn, err error) {
	if err := checkNumeric(address); err != nil {
		return nil, fmt.Errorf("connecting from %s to %q: %w", n.Name, address, err)
	}
	err = visit(n.namespace, func(leave func() error) (err error) {
		opened := false
		dialer := net.Dialer{Control: func(string, string, syscall.RawConn) error {
			if opened {
				// The address was unavailable at the first attempt, and net.Dialer opened
				// another socket: outside of the namespace.
				return syscall.EADDRNOTAVAIL
			}
			opened = true
			return leave()
		}}
		if port != 0 {
			dialer.LocalAddr = &net.TCPAddr{Port: int(port)}
		}
		conn, err = dialer.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// checkNumeric refuses anything but an IP address and a port.
func checkNumeric(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		_, err = netip.ParseAddr(host)
	}
	return err
}
