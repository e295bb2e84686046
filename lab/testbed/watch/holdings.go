package watch

import (
	"net/netip"
	"time"
)

// holding is a VIP on a node.
type holding struct {
	vip  netip.Addr
	node string
}

// holdings builds the spans of one view.
type holdings struct {
	view  View
	open  map[holding]*openSpan
	ended []Span
}

type openSpan struct {
	from, to time.Duration
	keep     time.Duration // the next claim may come this much later
}

func newHoldings(view View) *holdings {
	return &holdings{view: view, open: map[holding]*openSpan{}}
}

// begin records that a node has a VIP from now on.
func (h *holdings) begin(k holding, at time.Duration) {
	if h.open[k] == nil {
		h.open[k] = &openSpan{from: at, to: at}
	}
}

// claim records that a node claims a VIP, and will again within keep if it still has it.
func (h *holdings) claim(k holding, at, keep time.Duration) {
	s := h.open[k]
	if s != nil && at-s.to > s.keep {
		h.end(k, s.to)
		s = nil
	}
	if s == nil {
		s = &openSpan{from: at}
		h.open[k] = s
	}
	s.to, s.keep = max(s.to, at), max(s.keep, keep)
}

// end records that a node no longer has a VIP.
func (h *holdings) end(k holding, at time.Duration) {
	s := h.open[k]
	if s == nil {
		return
	}
	delete(h.open, k)
	h.ended = append(h.ended, h.span(k, s.from, max(s.from, at)))
}

func (h *holdings) span(k holding, from, to time.Duration) Span {
	return Span{View: h.view, VIP: k.vip, Node: k.node, From: from, To: to}
}
