package chaos

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/internal/vrrp"
)

// Result is the result of a run.
type Result struct {
	Seed   uint64        `json:"seed"`
	Lasted time.Duration `json:"lasted"`
	Rounds int           `json:"rounds"`
	// Faults is the number of faults by kind. Nothing is the number of faults without a target,
	// such as a daemon that was just starting again.
	Faults  map[Kind]int `json:"faults"`
	Nothing int          `json:"nothing"`
	// Failovers is the number of times that a node acquired a VIP, or a router a route to one for it.
	Failovers int `json:"failovers"`
	// Requests and Lost are those of the client behind routers, and how many had no answer.
	Requests int `json:"requests,omitempty"`
	Lost     int `json:"lost,omitempty"`
	// WithoutHolder is the longest time in which no node that could serve held a VIP, although
	// there was one, or the client behind routers had no answer while a node served. SplitBrain is the
	// longest time in which two nodes held one.
	WithoutHolder time.Duration `json:"withoutHolder"`
	SplitBrain    time.Duration `json:"splitBrain"`
	// Late is the total delay of this machine.
	Late       time.Duration `json:"late"`
	Bounds     Bounds        `json:"bounds"`
	Violations []Violation   `json:"violations"`
	Timeline   []Moment      `json:"timeline,omitempty"`
	history    *history
	Logs       map[string]string `json:"-"`
}

// Moment is an event with its time.
type Moment struct {
	At   time.Duration `json:"at"`
	What string        `json:"what"`
}

func (r *Result) update(l longest) {
	r.WithoutHolder = max(r.WithoutHolder, l.Without)
	r.SplitBrain = max(r.SplitBrain, l.Overlap)
}

// total returns the number of faults.
func (r *Result) total() (n int) {
	for _, k := range r.Faults {
		n += k
	}
	return n
}

// Summary writes the result for people.
func (r *Result) Summary(w io.Writer) {
	fmt.Fprintf(w, "seed %d: %d faults in %d rounds, %v; %d more without a target\n", r.Seed, r.total(), r.Rounds, r.Lasted.Round(time.Second), r.Nothing)
	for _, k := range slices.SortedFunc(maps.Keys(r.Faults), func(a, b Kind) int {
		return cmp.Or(cmp.Compare(r.Faults[b], r.Faults[a]), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(w, "  %4d  %-20s %s\n", r.Faults[k], k, k.title())
	}
	if r.Bounds.Session > 0 {
		fmt.Fprintf(w, "routes of routers to nodes: %d, %d of %d requests lost\n", r.Failovers, r.Lost, r.Requests)
		fmt.Fprintf(w, "longest without an answer, while a node served: %v (%v allowed)\n", round(r.WithoutHolder), round(r.Bounds.silent()))
	} else {
		r.elections(w)
	}
	fmt.Fprintf(w, "of what is allowed, %v are slack for this machine; it was late by %v in all\n", r.Bounds.Slack, round(r.Late))
	fmt.Fprintf(w, "violations: %d\n", len(r.Violations))
	for _, v := range r.Violations {
		fmt.Fprintf(w, "  %v\n", v)
	}
}

func (r *Result) elections(w io.Writer) {
	fmt.Fprintf(w, "VIPs acquired: %d times\n", r.Failovers)
	fmt.Fprintf(w, "longest "+vrrp.WithoutHolder+" that serves, while a node could: %v (%v allowed without a holder)\n", round(r.WithoutHolder), round(r.Bounds.silent()))
	fmt.Fprintf(w, "longest split brain of nodes that reach each other: %v (%v allowed)\n", round(r.SplitBrain), round(r.Bounds.overlap()))
}

// around is the time before a violation that its report covers.
const around = 20 * time.Second

// Report writes the events around the first violation: faults, holders, and conditions of the
// nodes.
func (r *Result) Report(w io.Writer) {
	if len(r.Violations) == 0 {
		return
	}
	from := r.Violations[0].From - around
	list := slices.Clone(r.Timeline)
	if h := r.history; h != nil {
		for _, s := range h.Holders {
			list = append(list, Moment{s.From, fmt.Sprintf("    %s has %v", s.Node, s.VIP)})
			if s.To != forever {
				list = append(list, Moment{s.To, fmt.Sprintf("    %s has %v no more", s.Node, s.VIP)})
			}
		}
		for _, c := range h.Conditions {
			what := strings.TrimSpace(fmt.Sprintf("%s %s", c.Effect, c.Group))
			node := cmp.Or(c.Node, "every node")
			list = append(list, Moment{c.From, fmt.Sprintf("        %s is %s: %s", node, what, c.Why)})
			if c.To != forever {
				list = append(list, Moment{c.To, fmt.Sprintf("        %s is not %s any more: %s", node, what, c.Why)})
			}
		}
		for _, t := range h.Topologies {
			list = append(list, Moment{t.From, fmt.Sprintf("        sides: %v", t.Sides)})
		}
		for _, s := range h.Stalls {
			list = append(list, Moment{s.At, fmt.Sprintf("        this machine was late by %v", round(s.Late))})
		}
	}
	for _, v := range r.Violations {
		list = append(list, Moment{v.To, "VIOLATION " + v.String()})
	}
	slices.SortStableFunc(list, func(a, b Moment) int { return cmp.Compare(a.At, b.At) })
	for _, m := range list {
		if m.At >= from {
			fmt.Fprintf(w, "%9.3fs  %s\n", m.At.Seconds(), m.What)
		}
	}
}
