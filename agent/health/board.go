package health

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Names of facts about a node. Those of ingress groups are made from the
// group's name.
const (
	FactAPI           = "api"            // the local API server is ready
	FactHAProxy       = "haproxy"        // HAProxy is ready, with at least one backend up
	FactRedirect      = "redirect"       // the redirect from every VIP to HAProxy is in place
	FactMachineConfig = "machine-config" // the machine config server answers
	FactDNS           = "dns"            // CoreDNS answers
	FactIronic        = "ironic"         // the provisioning service answers, on the bootstrap
)

// RouterReady is the fact that the router takes traffic.
func RouterReady(group string) string { return group + "-router-ready" }

// RouterAnswers is the fact that the router lives.
func RouterAnswers(group string) string { return group + "-router-answers" }

// RouterHere is the fact that a ready pod of the group's own ingress controller
// runs on this node (hard case 21). While the API is away its last word stands.
func RouterHere(group string) string { return group + "-router-here" }

// Fact is what is known about one thing.
type Fact struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	// Why says in a few words why it is not so.
	Why string `json:"why,omitempty"`
}

// Board holds what is known about the node, from checks and from elsewhere.
type Board struct {
	mu      sync.Mutex
	facts   map[string]Fact
	changed chan struct{}
}

// NewBoard makes an empty board.
func NewBoard() *Board {
	return &Board{facts: map[string]Fact{}, changed: make(chan struct{}, 1)}
}

// Set makes a fact known.
func (b *Board) Set(f Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, known := b.facts[f.Name]; known && before == f {
		return
	}
	b.facts[f.Name] = f
	b.say()
}

// Report makes the result of a check known.
func (b *Board) Report(r Result) {
	f := Fact{Name: r.Name, OK: r.Healthy}
	if r.Err != nil {
		f.Why = r.Err.Error()
	}
	b.Set(f)
}

func (b *Board) say() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Changed says that facts changed since it was read last. It has one reader.
func (b *Board) Changed() <-chan struct{} { return b.changed }

// Get gives a fact, if it is known.
func (b *Board) Get(name string) (f Fact, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known = b.facts[name]
	return f, known
}

// Facts gives all facts, sorted by name.
func (b *Board) Facts() []Fact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.facts), func(a, b Fact) int { return strings.Compare(a.Name, b.Name) })
}
