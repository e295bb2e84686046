package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
)

// The kernel assigns ports from 32768 on itself (ip(7), ip_local_port_range), and never these.
const (
	firstPort = 10000
	portCount = 20000
	// portsOfProcess is the distance between the first ports of two processes.
	portsOfProcess = 64
)

var portsGiven atomic.Int64

// FreePort returns a TCP port of an address of this machine that no program listens on, for a
// server that is started later: only a listener or connection that requests this very port gets
// it meanwhile, and other processes try other ports first.
func FreePort(addr netip.Addr) (uint16, error) {
	for range portCount {
		port := uint16(firstPort + (int64(os.Getpid())*portsOfProcess+portsGiven.Add(1))%portCount)
		l, err := net.Listen("tcp", netip.AddrPortFrom(addr, port).String())
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("looking for a free port: %w", err)
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port on %v", addr)
}
