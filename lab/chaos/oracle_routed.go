package chaos

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// Rules of VIPs that routers know by BGP. The holders of a VIP are the nodes that the router of their
// rack sends packets for it to.
const (
	notRouted    Rule = "not-routed"    // a node serves, and its router sends it nothing
	notWithdrawn Rule = "not-withdrawn" // a node cannot serve, and its router sends it packets
	noAnswer     Rule = "no-answer"     // no request is answered although a node serves
	lostRequest  Rule = "lost-request"  // a request is not answered although no fault explains it
	foreignRoute Rule = "foreign-route" // a node uses a route of a router
)

// request is a request of the client behind the routers.
type request struct {
	VIP         netip.Addr
	Sent, Ended time.Duration
	Err         string // empty if it was answered
}

// withdrawn returns the time in which a node's routes go when a condition begins: the node notices,
// or BFD of its router, or the router after the hold time, where BFD is dropped.
func (j *judge) withdrawn(c condition) time.Duration {
	switch {
	case c.Effect == effectUnfit:
		return c.Notice + j.bounds.Slack
	case j.overlaps(effectUnwatched, c.Node, c.From-1, c.From+j.bounds.Detect+1):
		return j.bounds.Hold + j.bounds.Slack
	}
	return j.bounds.Detect + j.bounds.Slack
}

// withdraws reports whether a node with a condition is to have no routes.
func (c condition) withdraws(group v1alpha1.GroupRole) bool {
	return (c.Effect == effectOut || c.Effect == effectMute || c.Effect == effectUnfit) && (c.Group == "" || c.Group == group)
}

// checkRouted checks that the router of each node sends it packets for a VIP if it can serve, none if
// it cannot, and that the client has answers.
func (j *judge) checkRouted(v int, nodes []nodeState, held []int, from, to time.Duration) {
	group, serves := j.VIPs[v].Group, false
	for n, s := range nodes {
		if !slices.Contains(j.Nodes[n].Groups, group) {
			continue
		}
		has, can := slices.Contains(held, n), s.ability(group)
		serves = serves || has && can == able
		if can == able && !has {
			j.extend(spellKey{notRouted, v, n, -1}, from, to)
		}
		for _, c := range s.conditions {
			// Without any API server, nodes announce nevertheless (hard case 45).
			if has && can == unable && c.withdraws(group) && !j.lastResort(c, n, nodes, held) {
				r := j.extend(spellKey{notWithdrawn, v, n, -1}, from, to)
				notice := j.withdrawn(c)
				if c.Effect == effectUnfit && s.has(effectNoAPI, "") { // it is not known at once that the last resort is none
					notice += vrrp.APIServerProbe.Hung()
				}
				r.bad[c.Why] = max(r.bad[c.Why], notice)
			}
		}
	}
	if serves && slices.ContainsFunc(j.silences, func(s span) bool { return s.VIP == j.VIPs[v].Addr && s.From <= from && from < s.To }) {
		j.extend(spellKey{noAnswer, v, -1, -1}, from, to)
	}
}

// lastResort reports whether a node without HAProxy may have the API VIP: its own API server serves, and
// no other node of its rack is better.
func (j *judge) lastResort(c condition, node int, nodes []nodeState, held []int) bool {
	return c.Effect == effectUnfit && c.Group == v1alpha1.GroupAPI && !nodes[node].has(effectNoAPI, "") &&
		!slices.ContainsFunc(held, func(n int) bool {
			return n != node && j.Nodes[n].Rack == j.Nodes[node].Rack && nodes[n].ability(c.Group) == able
		})
}

// silence returns the times between two answered requests to a VIP that are longer than usual.
func (h *history) silence() (out []span) {
	for _, v := range h.VIPs {
		last, asked := h.From, false
		for _, r := range h.Requests {
			if r.VIP != v.Addr || r.Ended > h.Now {
				continue
			}
			if asked = true; r.Err == "" {
				out = append(out, span{VIP: v.Addr, From: last, To: r.Sent})
				last = r.Sent
			}
		}
		if asked {
			out = append(out, span{VIP: v.Addr, From: last, To: h.Now})
		}
	}
	return slices.DeleteFunc(out, func(s span) bool { return s.To-s.From <= 2*askEvery })
}

// lostRequests reports the first request to each VIP that was lost without a fault that explains it.
func (j *judge) lostRequests() {
	for _, v := range j.VIPs {
		i := slices.IndexFunc(j.Requests, func(r request) bool {
			return r.VIP == v.Addr && r.Err != "" && r.Ended <= j.Now && !j.explained(r, v.Group)
		})
		if i >= 0 {
			r := j.Requests[i]
			j.found = append(j.found, Violation{Rule: lostRequest, From: r.Sent, To: r.Ended, VIP: v.Addr.String(),
				Happened: fmt.Sprintf("a request to %v is lost: %s", v.Addr, r.Err)})
		}
	}
}

// unanswered returns the longest time without an answer. While routers send packets to nodes that cannot
// serve, load balancers requests to API servers that do not answer, or a daemon of a router is dead, any
// number of requests in a row can meet these.
func (j *judge) unanswered(k spellKey, r *spell) time.Duration {
	most := j.bounds.silent()
	for _, c := range j.Conditions {
		if c.From >= r.to || c.To <= r.from {
			continue
		}
		switch {
		case c.withdraws(j.VIPs[k.vip].Group):
			most = max(most, j.withdrawn(c)+askTimeout)
		case c.Effect == effectNoAPI && j.VIPs[k.vip].Group == v1alpha1.GroupAPI && c.From+j.bounds.Backends > r.from:
			most = max(most, j.bounds.Backends+j.bounds.Slack+askTimeout)
		case c.Effect == effectUnwatched:
			most = max(most, j.bounds.Hold+j.bounds.Slack+askTimeout)
		}
	}
	if j.missedBFD(r.from, r.to) {
		most = max(most, 2*j.bounds.Session+j.bounds.Slack+askTimeout)
	}
	return most
}

// count returns the number of requests, and how many of them were lost.
func count(list []request) (all, lost int) {
	for _, r := range list {
		if r.Err != "" {
			lost++
		}
	}
	return len(list), lost
}

// moved is the time around the start of a request in which a change of the routes can move its
// connection to another node, which resets it.
const moved = 100 * time.Millisecond

// explained reports whether a request was lost to a fault: one that its router did not know yet, one
// that makes nodes unsure, a connection that routers moved, or this machine.
func (j *judge) explained(r request, group v1alpha1.GroupRole) bool {
	changes := func(at time.Duration) bool { return at >= r.Sent-moved && at <= min(r.Ended, r.Sent+moved) }
	if slices.ContainsFunc(j.Holders, func(s span) bool { return s.VIP == r.VIP && (changes(s.From) || changes(s.To)) }) {
		return true
	}
	return j.late(r.Sent, r.Ended) >= askTimeout/2 || j.missedBFD(r.Sent, r.Ended) || slices.ContainsFunc(j.Conditions, func(c condition) bool {
		to := c.To
		switch {
		case c.withdraws(group):
			to = min(to, c.From+j.withdrawn(c))
		case c.Effect == effectNoAPI || c.Effect == effectUnsureAPI:
			if group != v1alpha1.GroupAPI {
				return false
			}
		case c.Effect != effectUnsure && c.Effect != effectUnwatched || c.Group != "" && c.Group != group:
			return false
		}
		return c.From < r.Ended && r.Sent < to
	})
}

// missedBFD reports whether this machine was late for so long that BFD of all nodes went down, and
// sessions are not open again yet.
func (j *judge) missedBFD(from, to time.Duration) bool {
	return slices.ContainsFunc(j.Stalls, func(s stall) bool {
		return s.Late >= j.bounds.Detect && s.At > from-stallWindow && s.At-s.Late < to
	})
}
