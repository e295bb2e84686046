package fabric

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vipgen/vipgen/internal/arpnd"
	"github.com/vipgen/vipgen/internal/lists"
)

// Result is the outcome of a check.
type Result string

const (
	Pass    Result = "pass"
	Warning Result = "warning" // VIPs work, with the stated restriction
	Fail    Result = "fail"
)

// Check is the result of one check in one direction.
type Check struct {
	// Name is unused, move-FORM, resolution, duplicate-detection, source, announcement-rate or
	// vrrp-MODE.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// From and To are nodes: the previous holder and the next one, or sender and receiver.
	From   netip.Addr `json:"from"`
	To     netip.Addr `json:"to,omitzero"`
	Result Result     `json:"result"`
	Figure string     `json:"figure"`
	// ReachedMS is how long packets to the address took to reach its next holder.
	ReachedMS float64 `json:"reachedMS,omitempty"`
	Cause     string  `json:"cause,omitempty"`
	Next      string  `json:"next,omitempty"`
}

// passed returns a check that passes, but for what the others add.
func passed(name, format string, args ...any) Check {
	return Check{Name: name, Result: Pass, Figure: fmt.Sprintf(format, args...)}
}

// failed adds a result, its cause and what to do.
func (c Check) failed(r Result, cause, next string) Check {
	c.Result, c.Cause, c.Next = r, cause, next
	return c
}

// unused judges answers for the address before a node holds it.
func unused(macs []net.HardwareAddr, others []netip.Addr) Check {
	c := passed("unused", "answers: %d", len(macs))
	switch {
	case len(others) > 0:
		return c.failed(Fail, fmt.Sprintf("%s answers for it, and for %s: proxy ARP or ND, or a host with all these addresses", lists.Join(macs, ", "), lists.Join(others, ", ")),
			"disable proxy ARP on routers of this subnet; if these addresses are in use, name another one")
	case len(macs) > 0:
		return c.failed(Fail, lists.Join(macs, ", ")+" answers for it: the address is in use", "name an address that is not in use")
	}
	return c
}

// moved judges how long packets to the address took to reach its next holder, and whether
// the previous one received the announcement.
func moved(form arpnd.Form, took time.Duration, received int) Check {
	c := passed("move-"+string(form), "%v", took.Round(time.Millisecond))
	if took < 0 {
		c.Figure = fmt.Sprintf("not within %v", moveWithin)
	} else {
		c.ReachedMS = float64(took.Microseconds()) / 1000
	}
	what := map[arpnd.Form]string{arpnd.Request: "gratuitous ARP requests", arpnd.Reply: "gratuitous ARP replies", arpnd.Advertisement: "unsolicited neighbour advertisements"}[form]
	result := Fail
	if form == arpnd.Reply { // neither keepalived nor the agent sends them by default
		result = Warning
	}
	switch {
	case took < 0 && received == 0:
		c = c.failed(result, what+" do not arrive: neighbours keep the previous holder", "have the network pass and learn from them: GARP detection (ACI), no ARP or ND suppression, inspection or limit at these ports")
	case took < 0:
		c = c.failed(result, what+" arrive, but packets to the new holder do not: the network does not learn that the address moved", "allow the address at both ports: port security, IP source guard, endpoint learning")
	case took >= announceEvery:
		c = c.failed(Warning, what+" are delayed, or the first ones lost", "raise limits of ARP or ND at these ports, or of the switch's processor")
	}
	if form == arpnd.Reply && c.Result != Pass {
		c.Next = "nothing: keepalived and vipgen-agent announce VIPs by requests"
	}
	return c
}

// resolved judges the answers of other hosts' requests for the address.
func resolved(macs []net.HardwareAddr, holder, previous net.HardwareAddr) Check {
	c := passed("resolution", "answers: %d", len(macs))
	switch {
	case len(macs) == 0:
		return c.failed(Fail, "requests for the address, or their answers, do not arrive", "have the network pass broadcast ARP and solicited-node multicast (MLD snooping)")
	case has(macs, previous):
		return c.failed(Fail, "the network answers with the previous holder "+previous.String()+": ARP or ND suppression that has not learned the move", "disable suppression, or have it learn from gratuitous ARP")
	case len(macs) > 1 || !has(macs, holder):
		return c.failed(Fail, fmt.Sprintf("%s answers, and the holder is %s: proxy ARP or ND", lists.Join(macs, ", "), holder), "disable proxy ARP and ND for this subnet")
	}
	return c
}

// duplicate judges the answers of duplicate address detection while the other node has the
// address (RFC 4862, section 5.4).
func duplicate(macs []net.HardwareAddr, holder net.HardwareAddr) Check {
	c := passed("duplicate-detection", "answers: %d", len(macs))
	if !has(macs, holder) {
		return c.failed(Fail, "a second holder would not be detected", "have the network pass neighbour solicitations from the unspecified address to solicited-node groups (MLD snooping, ND inspection)")
	}
	return c
}

// source judges how many packets from the address arrived.
func source(n int) Check {
	c := passed("source", "%d of %d packets", n, spoken)
	if n == 0 {
		return c.failed(Fail, "packets from the address are dropped at its new port", "allow the address at both ports: IP source guard, port security, allowed address pairs")
	}
	return c
}

// rate judges how many announcements of a burst arrived.
func rate(n int) Check {
	c := passed("announcement-rate", "%d of %d announcements", n, burst)
	const next = "raise the limit of ARP or ND packets at these ports above 100 a second"
	switch {
	case n == 0:
		return c.failed(Fail, "announcements do not arrive", "see the move")
	case n < burst:
		return c.failed(Warning, "announcements are limited: with many VIPs on a node some move late", next)
	}
	return c
}

// advertised judges VRRP (RFC 9568, section 5.1) in a mode, given the other one.
func advertised(mode string, got, other answer) Check {
	c := passed("vrrp-"+mode, "%d of %d advertisements", got.Count, adverts)
	switch {
	case got.Count > 0 && got.TTL != 255:
		return c.failed(Fail, fmt.Sprintf("they arrive with TTL %d: routers drop them", got.TTL), "put both nodes into one layer-2 network")
	case got.Count == 0 && other.Count > 0:
		return c.failed(Warning, mode+" VRRP (protocol 112) does not arrive", "use the other mode (spec.vrrp), or pass protocol 112")
	case got.Count == 0:
		return c.failed(Fail, "VRRP (protocol 112) does not arrive: all nodes would hold the VIP", "pass protocol 112 between nodes")
	case got.Count < adverts:
		return c.failed(Warning, "some are lost", "see why the network loses packets: VIPs move when three in a row are lost")
	}
	return c
}
