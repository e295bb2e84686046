package verify

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Row is a row of the table of holders.
type Row struct {
	// Best is the best service that any node offers.
	Best string `json:"best"`
	// Priorities lists the priorities of the nodes that offer it, highest first.
	Priorities []int `json:"priorities,omitempty"`
	// Holder names the nodes that held the VIP then.
	Holder string `json:"holder"`
	// Combinations is the number of combinations of parts with this row.
	Combinations int `json:"combinations"`
}

// table collects rows by the best service.
type table map[string]*tally

type tally struct {
	rank         int
	priorities   map[int]bool
	holders      map[string]bool
	combinations int
}

// Rows without a node that is fit to hold the VIP.
const (
	nobody      = "no node"
	suchANode   = "any node at that level"
	nothingRuns = "no node runs keepalived"
	othersAlone = "routers of other ingress controllers alone"
)

func (t table) add(v *view, times int) {
	best, words := -1, nothingRuns
	for x := range v.nodes() {
		q := v.at[x].quality
		switch {
		case !v.runs(x):
		case q.never == &ownRouter && best < 0:
			words = othersAlone
		case q.never != nil && best < 0 && words != othersAlone:
			words = q.words + " anywhere"
		case q.never == nil && q.rank > best:
			best, words = q.rank, q.words
		}
	}
	row := t[words]
	if row == nil {
		row = &tally{rank: best, priorities: map[int]bool{}, holders: map[string]bool{}}
		t[words] = row
	}
	row.combinations += times
	row.holders[v.holderWords(best)] = true
	for x := range v.nodes() {
		if q := v.at[x].quality; v.runs(x) && best >= 0 && q.words == words {
			for _, p := range v.at[x].priorities {
				row.priorities[p] = true
			}
		}
	}
}

func (v *view) holderWords(best int) string {
	x := v.only(v.holders)
	switch {
	case x < 0:
		return nobody
	case v.at[x].quality.rank == best:
		return suchANode
	}
	return "a node with less: " + v.at[x].quality.words
}

// rows returns the table, the best first.
func (t table) rows() []Row {
	words := slices.SortedFunc(maps.Keys(t), func(a, b string) int {
		return cmp.Or(t[b].rank-t[a].rank, cmp.Compare(a, b))
	})
	var out []Row
	for _, w := range words {
		r := t[w]
		priorities := slices.Sorted(maps.Keys(r.priorities))
		slices.Reverse(priorities)
		out = append(out, Row{Best: w, Priorities: priorities, Holder: strings.Join(slices.Sorted(maps.Keys(r.holders)), " or "), Combinations: r.combinations})
	}
	return out
}
