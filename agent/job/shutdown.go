package job

import (
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/netdump"
)

// The order in which the jobs of a node end when all are told to at once, as when the node
// is shut down or rebooted (hard case 43): the VIPs leave the node first, then the redirect
// goes, then HAProxy finishes what it has.
//
// The jobs are in containers that may end in any order, and one of them may be dead. So
// none waits for another: each looks whether the VIPs are still on the node, and waits no
// longer than a bound.

// ShutdownBound is how long a job waits for the VIPs to leave: the keepalived job takes
// MostPriority at most before it stops keepalived, which takes a second or two then.
const ShutdownBound = MostPriority + 3*time.Second

// MostPriority is how long the keepalived job waits at most for a peer to take the VIPs
// from a holder that is still there: an advert a second needs four seconds.
const MostPriority = 5 * time.Second

// lookEvery is how often it is looked.
const lookEvery = 5 * time.Millisecond

// AwaitVIPs returns when none of the VIPs is on the node, or after bound. It says whether they
// have gone; if nobody can tell which addresses there are, they have not.
func AwaitVIPs(vips []netip.Addr, bound time.Duration) (gone bool) {
	for deadline := time.Now().Add(bound); ; time.Sleep(lookEvery) {
		here, err := VIPsHere(vips)
		if err == nil && !here {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// VIPsHere says whether one of the VIPs is on any interface of the node.
func VIPsHere(vips []netip.Addr) (bool, error) {
	here, err := Here(vips)
	return len(here) > 0, err
}

// Here are those of the VIPs that are on any interface of the node.
func Here(vips []netip.Addr) (here []netip.Addr, err error) {
	list, err := netdump.Addresses()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if ip := netdump.IP(a); slices.Contains(vips, ip) {
			here = append(here, ip)
		}
	}
	return here, nil
}
