package health

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Names of facts about a node. Names for ingress groups contain the group's name.
const (
	FactAPI           = "api"                // the local API server is ready
	FactHAProxy       = "haproxy"            // HAProxy is ready, with at least one API server that takes connections
	factReady         = "api-ready"          // HAProxy has an API server that is ready, or had one in the last UnreadyAfter
	FactRedirect      = "redirect"           // the redirect from every VIP of the first API group to HAProxy is in place
	FactRestarting    = "haproxy-restarting" // HAProxy crashed a moment ago and is being started again
	factMachineConfig = "machine-config"     // the machine config server answers
	FactDNS           = "dns"                // CoreDNS answers
	FactIronic        = "ironic"             // the provisioning service answers, on the bootstrap
)

// Redirect returns the fact that every VIP of an API group is redirected to HAProxy.
func Redirect(g *v1alpha1.Group) string {
	if g.AdditionalAPI() {
		return g.Name + "-" + FactRedirect
	}
	return FactRedirect
}

// RouterReady returns the fact that the router accepts traffic.
func RouterReady(group string) string { return group + "-router-ready" }

// routerAnswers returns the fact that the router is alive.
func routerAnswers(group string) string { return group + "-router-answers" }

// RouterHere returns the fact that a ready pod of the group's own ingress controller runs
// on this node (hard case 21). While the API is away its last answer stays.
func RouterHere(group string) string { return group + "-router-here" }

// RouterOwn returns the fact that the routers on this node are not only those of other
// ingress controllers. While the API is away its last answer stays; before the first one,
// the fact is unknown.
func RouterOwn(group string) string { return group + "-router-own" }

// FactsOf returns the names of facts about one group only.
func FactsOf(g *v1alpha1.Group) []string {
	switch g.Role {
	case v1alpha1.GroupAPI:
		return []string{Redirect(g)}
	case v1alpha1.GroupIngress:
		return []string{RouterReady(g.Name), routerAnswers(g.Name), RouterHere(g.Name), RouterOwn(g.Name)}
	}
	return nil
}

// Board holds the known facts about the node, from checks and other sources.
type Board struct {
	// Notify is called with each new or changed fact; it may be nil, and must not use the
	// board. It is set before the first use.
	Notify func(state.Fact)

	mu      sync.Mutex
	facts   map[string]state.Fact
	changed chan struct{} // holds a value after changes; one reader
}

// NewBoard returns an empty board.
func NewBoard() *Board {
	return &Board{facts: map[string]state.Fact{}, changed: make(chan struct{}, 1)}
}

func (b *Board) Set(f state.Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, known := b.facts[f.Name]; known && before == f {
		return
	}
	b.facts[f.Name] = f
	if b.Notify != nil {
		b.Notify(f)
	}
	b.notify()
}

// Forget removes facts that are no longer updated.
func (b *Board) Forget(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if _, known := b.facts[name]; known {
			delete(b.facts, name)
			b.notify()
		}
	}
}

func (b *Board) notify() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Get returns a fact, if known.
func (b *Board) Get(name string) (f state.Fact, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known = b.facts[name]
	return f, known
}

// Facts returns all facts, sorted by name.
func (b *Board) Facts() []state.Fact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.facts), func(a, b state.Fact) int { return strings.Compare(a.Name, b.Name) })
}
