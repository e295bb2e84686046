package health

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Names of facts about a node. Those of ingress groups are made from the
// group's name.
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

// Redirect is the fact that every VIP of an API group is redirected to HAProxy.
func Redirect(g *v1alpha1.Group) string {
	if g.AdditionalAPI() {
		return g.Name + "-" + FactRedirect
	}
	return FactRedirect
}

// RouterReady is the fact that the router takes traffic.
func RouterReady(group string) string { return group + "-router-ready" }

// routerAnswers is the fact that the router lives.
func routerAnswers(group string) string { return group + "-router-answers" }

// RouterHere is the fact that a ready pod of the group's own ingress controller
// runs on this node (hard case 21). While the API is away its last word stands.
func RouterHere(group string) string { return group + "-router-here" }

// RouterOwn is the fact that the routers on this node are not of other ingress
// controllers alone. While the API is away its last word stands; where it never said
// anything, the fact is not known.
func RouterOwn(group string) string { return group + "-router-own" }

// FactsOf are the names of the facts that are about one group alone.
func FactsOf(g *v1alpha1.Group) []string {
	switch g.Role {
	case v1alpha1.GroupAPI:
		return []string{Redirect(g)}
	case v1alpha1.GroupIngress:
		return []string{RouterReady(g.Name), routerAnswers(g.Name), RouterHere(g.Name), RouterOwn(g.Name)}
	}
	return nil
}

// Board holds what is known about the node, from checks and from elsewhere.
type Board struct {
	// Told is called with each fact that is new or has changed; it may be nil, and must not
	// use the board. It is set before the first use.
	Told func(state.Fact)

	mu      sync.Mutex
	facts   map[string]state.Fact
	changed chan struct{} // holds a value if facts changed since it was read last; one reader
}

// NewBoard makes an empty board.
func NewBoard() *Board {
	return &Board{facts: map[string]state.Fact{}, changed: make(chan struct{}, 1)}
}

// Set makes a fact known.
func (b *Board) Set(f state.Fact) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before, known := b.facts[f.Name]; known && before == f {
		return
	}
	b.facts[f.Name] = f
	if b.Told != nil {
		b.Told(f)
	}
	b.say()
}

// Forget drops facts of which nobody will hear any more.
func (b *Board) Forget(names ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range names {
		if _, known := b.facts[name]; known {
			delete(b.facts, name)
			b.say()
		}
	}
}

func (b *Board) say() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Get gives a fact, if it is known.
func (b *Board) Get(name string) (f state.Fact, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, known = b.facts[name]
	return f, known
}

// Facts gives all facts, sorted by name.
func (b *Board) Facts() []state.Fact {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.facts), func(a, b state.Fact) int { return strings.Compare(a.Name, b.Name) })
}
