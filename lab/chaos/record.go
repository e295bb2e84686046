package chaos

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// record collects the events of a run. Its methods are safe for concurrent use.
type record struct {
	since time.Time
	watch *watch.Watch
	// routed is set where routers know the VIPs by BGP.
	routed *routed

	mu         sync.Mutex
	nodes      []node
	vips       []vip
	conditions []*condition
	topologies []topology
	stalls     []stall
	logged     []logged
}

func (r *record) now() time.Duration { return time.Since(r.since) }

// mark is a condition that lasts until it is ended.
type mark struct {
	record    *record
	condition *condition
}

// begin records a condition that starts now; begin sets its times.
func (r *record) begin(c condition) *mark {
	c.From, c.To = r.now(), forever
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditions = append(r.conditions, &c)
	return &mark{r, &c}
}

// end records that the condition ends after a time.
func (m *mark) end(after time.Duration) {
	at := m.record.now() + after
	m.record.mu.Lock()
	defer m.record.mu.Unlock()
	m.condition.To = at
}

// topology records the sides of the network from now on.
func (r *record) topology(sides map[string]int) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.topologies = append(r.topologies, topology{at, sides})
}

// want records the wanted state of a VIP after a time, and removes what was recorded from then on.
func (r *record) want(vip netip.Addr, after time.Duration, what wanted) {
	at := r.now() + after
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.vips {
		v := &r.vips[i]
		if v.Addr == vip {
			v.Wants = slices.DeleteFunc(v.Wants, func(w want) bool { return w.From >= at })
			v.Wants = append(v.Wants, want{at, what})
		}
	}
}

func (r *record) log(l ...logged) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logged = append(r.logged, l...)
}

func (r *record) stall(s stall) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stalls = append(r.stalls, s)
}

// late returns the total delay of this machine since a time.
func (r *record) late(since time.Duration) (sum time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.stalls {
		if s.At >= since {
			sum += s.Late
		}
	}
	return sum
}

// history returns the events from a time on.
func (r *record) history(from time.Duration) history {
	// Spans that have not ended would seem to end when the timeline is made.
	asked := r.now()
	timeline := r.watch.Timeline()
	h := history{From: from, Now: asked}
	for _, s := range timeline.In(watch.Addresses) {
		to := s.To
		if to >= asked {
			to = forever
		}
		if to > from {
			h.Holders = append(h.Holders, span{VIP: s.VIP, Node: s.Node, From: s.From, To: to})
		}
	}
	if r.routed != nil {
		h.Holders, _ = r.routed.spans(from)
		h.Requests = r.routed.requests(from)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	h.Nodes = r.nodes
	for _, v := range r.vips {
		v.Wants = slices.Clone(v.Wants)
		h.VIPs = append(h.VIPs, v)
	}
	for _, c := range r.conditions {
		if c.To > from {
			h.Conditions = append(h.Conditions, *c)
		}
	}
	h.Topologies = slices.Clone(r.topologies)
	for _, s := range r.stalls {
		if s.At >= from-stallWindow {
			h.Stalls = append(h.Stalls, s)
		}
	}
	for _, l := range r.logged {
		if l.At >= from-logWindow {
			h.Logged = append(h.Logged, l)
		}
	}
	return h
}
