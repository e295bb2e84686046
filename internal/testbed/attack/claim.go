package attack

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Claim makes a host announce other hosts' addresses on its link repeatedly, until stop: by
// gratuitous ARP (RFC 5227 section 3) and unsolicited neighbour advertisements (RFC 4861 section
// 7.2.6).
func Claim(host *netns.Node, every time.Duration, addrs ...netip.Addr) (stop func(), err error) {
	var fd int
	var link *net.Interface
	err = host.Do(func() (err error) {
		if link, err = net.InterfaceByName(host.Link); err == nil {
			fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		defer unix.Close(fd)
		for ctx.Err() == nil {
			for _, a := range addrs {
				data, to := claim(a, link)
				if err := unix.Sendto(fd, data, 0, to); err != nil && !errors.Is(err, unix.ENOBUFS) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(every):
			}
		}
	})
	return sync.OnceFunc(func() { cancel(); done.Wait() }), nil
}

// claim returns a packet that claims an address for a link, and all hosts as its target.
func claim(a netip.Addr, link *net.Interface) ([]byte, *unix.SockaddrLinklayer) {
	mac := link.HardwareAddr
	to := &unix.SockaddrLinklayer{Ifindex: link.Index, Halen: 6}
	if a.Is4() {
		to.Protocol, to.Addr = bigEndian(unix.ETH_P_ARP), [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
		return slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 2}, mac, a.AsSlice(), to.Addr[:6], a.AsSlice()), to
	}
	to.Protocol, to.Addr = bigEndian(unix.ETH_P_IPV6), [8]byte{0x33, 0x33, 0, 0, 0, 1}
	const advertisement, override, targetLinkLayer, icmp = 136, 0x20, 2, 58
	all := netip.MustParseAddr("ff02::1")
	body := slices.Concat([]byte{advertisement, 0, 0, 0, override, 0, 0, 0}, a.AsSlice(), []byte{targetLinkLayer, 1}, mac)
	sum := vrrp.Checksum(slices.Concat(a.AsSlice(), all.AsSlice(), []byte{0, 0, 0, byte(len(body)), 0, 0, 0, icmp}, body))
	body[2], body[3] = byte(sum>>8), byte(sum)
	header := slices.Concat([]byte{0x60, 0, 0, 0, 0, byte(len(body)), icmp, 255}, a.AsSlice(), all.AsSlice())
	return append(header, body...), to
}

// bigEndian returns a number in network byte order on this machine, which is little-endian.
func bigEndian(v uint16) uint16 { return v<<8 | v>>8 }
