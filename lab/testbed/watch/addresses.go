package watch

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// addressBuffer is how many bytes of a node's changes may wait for a machine that
// has no time.
const addressBuffer = 1 << 20

// on is an address on one of a node's links. A node has a VIP while any of its
// links does.
type on struct {
	holding
	link int
}

// watchAddresses follows the addresses of a node until the watch ends. It knows
// those that are there already when it returns.
func (w *Watch) watchAddresses(node *netns.Node) error {
	changes := make(chan netlink.AddrUpdate)
	var have []netlink.Addr
	err := node.Do(func() (err error) {
		err = netlink.AddrSubscribeWithOptions(changes, w.stop, netlink.AddrSubscribeOptions{
			ErrorCallback:          w.fail,
			ReceiveBufferSize:      addressBuffer,
			ReceiveBufferForceSize: true,
		})
		if err != nil {
			return err
		}
		w.done.Go(func() { w.follow(node.Name, changes) })
		w.mu.Lock() // changes are looked at after what was there
		defer w.mu.Unlock()
		if have, err = netdump.Addresses(); err != nil {
			return err
		}
		for _, a := range have {
			w.address(node.Name, a.IPNet, a.LinkIndex, true, w.now())
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("watching the addresses of %s: %w", node.Name, err)
	}
	return nil
}

// follow notes changes until the watch ends.
func (w *Watch) follow(node string, changes <-chan netlink.AddrUpdate) {
	for c := range changes {
		at := w.now()
		w.mu.Lock()
		w.address(node, &c.LinkAddress, c.LinkIndex, c.NewAddr, at)
		w.mu.Unlock()
	}
}

// address notes that an address is on a node's link, or not any more.
func (w *Watch) address(node string, prefix *net.IPNet, link int, there bool, at time.Duration) {
	addr, ok := netip.AddrFromSlice(prefix.IP)
	if !ok || !w.vips[addr.Unmap()] {
		return
	}
	k := holding{vip: addr.Unmap(), node: node}
	if there {
		w.present[on{k, link}] = true
	} else {
		delete(w.present, on{k, link})
	}
	w.judge(k, at)
}

// judge begins or ends a holding by what the node's links have.
func (w *Watch) judge(k holding, at time.Duration) {
	if !w.off[k.node] {
		for p := range w.present {
			if p.holding == k {
				w.addresses.begin(k, at)
				return
			}
		}
	}
	w.addresses.end(k, at)
}

// Off tells that a node loses its power now: it holds nothing any more, whatever
// is still on its links.
func (w *Watch) Off(node string) { w.power(node, false) }

// On tells that a node has power again.
func (w *Watch) On(node string) { w.power(node, true) }

func (w *Watch) power(node string, on bool) {
	at := w.now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off[node] = !on
	for vip := range w.vips {
		w.judge(holding{vip, node}, at)
	}
}
