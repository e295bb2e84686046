package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
)

const (
	// captureBuffer is the size in bytes of the queue of packets, for a busy machine.
	captureBuffer = 4 << 20
	// maxFrame is more than the size of any relevant frame in bytes.
	maxFrame = 9216

	protocolICMPv6 = 58
	neighbourAdv   = 136 // RFC 4861, section 4.4
)

// wanted is a filter for incoming ARP, neighbour advertisements, and VRRP of either family, on any
// port. The kernel strips VLAN tags before it filters.
var wanted = []bpf.Instruction{
	bpf.LoadExtension{Num: bpf.ExtType},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: 12},
	bpf.LoadAbsolute{Off: 12, Size: 2}, // EtherType
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipTrue: 9},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IP, SkipFalse: 2},
	bpf.LoadAbsolute{Off: 23, Size: 1}, // protocol
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: vrrp.Protocol, SkipTrue: 6, SkipFalse: 7},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipFalse: 6},
	bpf.LoadAbsolute{Off: 20, Size: 1}, // next header
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: vrrp.Protocol, SkipTrue: 3},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolICMPv6, SkipFalse: 3},
	bpf.LoadAbsolute{Off: 54, Size: 1}, // ICMPv6 type
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: neighbourAdv, SkipFalse: 1},
	bpf.RetConstant{Val: maxFrame},
	bpf.RetConstant{Val: 0},
}

// listen starts to capture on all ports of the bridge. It also captures packets that the bridge
// does not forward.
func (w *Watch) listen(ctx context.Context, network *netns.Network) (err error) {
	if w.ports, err = network.Ports(); err == nil {
		err = network.Do(func() (err error) {
			w.bridge, err = listener.PacketSocket(unix.SOCK_RAW, unix.ETH_P_ALL, nil, wanted)
			return err
		})
	}
	if err == nil {
		err = w.bridge.SetReadBuffer(captureBuffer)
	}
	if err != nil {
		return fmt.Errorf("capturing on the bridge: %w", err)
	}
	w.done.Go(func() { w.receive(ctx) })
	return nil
}

// receive records packets until ctx ends.
func (w *Watch) receive(ctx context.Context) {
	frame, control := make([]byte, maxFrame), make([]byte, 256)
	parser := newParser()
	for {
		n, oob, _, from, err := w.bridge.Recvmsg(ctx, frame, control, 0)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, unix.ENETDOWN): // one of the ports; the others still work
			continue
		case err != nil:
			w.fail(fmt.Errorf("capturing on the bridge: %w", err))
			return
		}
		link, ok := from.(*unix.SockaddrLinklayer)
		if !ok || w.ports[link.Ifindex] == "" { // the bridge's own
			continue
		}
		if p, ok := parser.parse(frame[:n]); ok {
			w.record(w.ports[link.Ifindex], p, w.received(control[:oob]))
		}
	}
}

// received returns the time at which the kernel received a packet.
func (w *Watch) received(control []byte) time.Duration {
	now := w.now()
	// Implausible if the clock was set meanwhile.
	if waited := listener.Waited(control); waited > 0 && waited < time.Minute {
		return now - waited
	}
	return now
}

// closeBridge closes the capture, and records an error if packets were dropped.
func (w *Watch) closeBridge() {
	if w.bridge == nil {
		return
	}
	stats, err := w.bridge.GetsockoptTpacketStats(unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err == nil && stats.Drops > 0 {
		err = fmt.Errorf("%d packets were missed", stats.Drops)
	}
	if err = errors.Join(err, w.bridge.Close()); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, fmt.Errorf("capturing on the bridge: %w", err))
	}
}
