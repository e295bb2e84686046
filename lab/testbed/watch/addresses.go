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

// addressBuffer is the size in bytes of the queue of a node's changes, for a busy machine.
const addressBuffer = 1 << 20

// on is an address on one of a node's links. A node has a VIP while any of its links does.
type on struct {
	holding
	link int
}

// watchAddresses watches the addresses of a node until the watch ends. The existing ones are
// recorded when it returns.
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
		w.mu.Lock() // changes come after the existing addresses
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

// follow records changes until the watch ends.
func (w *Watch) follow(node string, changes <-chan netlink.AddrUpdate) {
	for c := range changes {
		at := w.now()
		w.mu.Lock()
		w.address(node, &c.LinkAddress, c.LinkIndex, c.NewAddr, at)
		w.mu.Unlock()
	}
}

// address records that an address was added to a node's link, or removed.
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

// judge starts or ends a holding depending on the addresses of the node's links.
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

// Off records that a node loses its power now: it holds nothing, whatever is still on its links.
func (w *Watch) Off(node string) { w.power(node, false) }

// On records that a node has power again.
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
