package verify

import (
	"math/bits"
	"slices"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// state is the set of working parts of a node: bit n is part n of its kind.
type state uint8

type part struct {
	// works and fails end a sentence that begins with the node's name.
	works, fails string
	// once is set where a failed part does not recover.
	once bool
}

// kind describes nodes of one role for the VIPs of a group: their parts, and their effect on
// clients and the agent.
type kind struct {
	parts []part
	// runs reports whether the node's keepalived runs.
	runs func(state) bool
	// serves reports whether an API server works on the node that HAProxy on every node can
	// reach.
	serves func(state) bool
	// health returns the agent's view; api is set where some API server works.
	health func(s state, api bool) vrrp.Health
	// quality returns what clients would get from the node as holder.
	quality func(s state, api bool) quality
}

// quality is the service of a node as the holder of a VIP.
type quality struct {
	// rank orders qualities; better nodes have a higher one.
	rank int
	// grade is the part of the rank that decides the holder: it must have the highest. 0 serves
	// no client.
	grade int
	// never is the check that fails if the node holds the VIP; nil where it may.
	never *Check
	words string
}

// Parts of every node.
const (
	partHost = iota
	partKeepalived
	firstOwn
)

var common = []part{
	partHost:       {works: "is up", fails: "is down"},
	partKeepalived: {works: "runs keepalived", fails: "runs no keepalived"},
}

func (s state) works(part int) bool { return s>>part&1 == 1 }

func up(s state) bool { return s.works(partHost) && s.works(partKeepalived) }

// on reports whether a part works on a host that is up.
func (s state) on(part int) bool { return s.works(partHost) && s.works(part) }

// kindOf returns the kind of a role; several is set for a cluster with several ingress
// controllers with VIPs, whose routers may run in each other's place.
func kindOf(g *v1alpha1.Group, role string, several bool) *kind {
	switch {
	case role == v1alpha1.RoleBootstrap:
		return bootstrapKind
	case g.Role == v1alpha1.GroupIngress && several:
		return shardKind
	case g.Role == v1alpha1.GroupIngress:
		return ingressKind
	case g.Role == v1alpha1.GroupDNS:
		return dnsKind
	case role == v1alpha1.RoleArbiter:
		return arbiterKind
	case g.AdditionalAPI():
		return clientsKind
	default:
		return controlPlaneKind
	}
}

// Parts of control-plane nodes; an arbiter has the first two.
const (
	partHAProxy = firstOwn + iota
	partRedirect
	partAPI
	partMachineConfig
)

var controlPlaneParts = append(slices.Clone(common),
	part{works: "has HAProxy running", fails: "has no HAProxy"},
	part{works: "has the redirect to HAProxy", fails: "lacks the redirect to HAProxy"},
	part{works: "has an API server", fails: "has no API server"},
	part{works: "has a machine config server", fails: "has no machine config server"},
)

var (
	controlPlaneKind = &kind{
		parts: controlPlaneParts, runs: up, health: controlPlaneHealth, quality: controlPlaneQuality,
		serves: func(s state) bool { return s.on(partAPI) },
	}
	// Additional API VIPs serve no machine configs.
	clientsKind = &kind{
		parts: controlPlaneParts[:partMachineConfig], runs: up, health: controlPlaneHealth, quality: controlPlaneQuality,
		serves: func(s state) bool { return s.on(partAPI) },
	}
	// An arbiter balances over the API servers of the others.
	arbiterKind = &kind{
		parts: controlPlaneParts[:partAPI], runs: up, health: controlPlaneHealth, quality: controlPlaneQuality,
		serves: func(state) bool { return false },
	}
)

// controlPlaneHealth is healthy if HAProxy is ready with at least one API server behind it, on
// any node; the redirect is withdrawn while HAProxy does not serve.
func controlPlaneHealth(s state, api bool) vrrp.Health {
	return vrrp.Health{
		HAProxy: s.on(partHAProxy) && api, Redirect: s.on(partHAProxy) && s.on(partRedirect) && api,
		API: s.on(partAPI), MachineConfig: s.on(partMachineConfig),
	}
}

// controlPlaneQuality prefers nodes with HAProxy: it reaches every working API server, also
// when the holder's restarts (hard case 7). Without HAProxy, or without the redirect to it,
// VIP:6443 is the port of the holder's own API server (hard case 6). The machine config server
// is reached on the holder alone.
func controlPlaneQuality(s state, api bool) quality {
	q := quality{words: "no way to an API server"}
	switch {
	case s.on(partHAProxy) && s.on(partRedirect) && api:
		q.grade, q.words = 2, "every API server, through HAProxy"
	case s.on(partAPI):
		q.grade, q.words = 1, "the node's own API server"
	}
	q.rank = 2 * q.grade
	if s.on(partMachineConfig) {
		q.rank++
		q.words += ", with a machine config server"
	}
	return q
}

// partLifetime keeps the API VIP on the bootstrap. Its end is permanent with vipgen's own (hard
// case 8); OpenShift's starts keepalived again with the API server.
const partLifetime = firstOwn

var bootstrapKind, openShiftsBootstrapKind = bootstrapOf(true), bootstrapOf(false)

// bootstrapOf returns the kind of a bootstrap; once is set where it does not start again.
func bootstrapOf(once bool) *kind {
	return &kind{
		parts: append(slices.Clone(common),
			part{works: "has its API server or provisioning service", fails: "has finished: its API server has gone", once: once}),
		runs:   func(s state) bool { return up(s) && s.works(partLifetime) },
		serves: func(state) bool { return false }, // HAProxy has the control plane's alone
		health: func(state, bool) vrrp.Health { return vrrp.Health{} },
		quality: func(state, bool) quality {
			return quality{rank: 100, grade: 100, words: "the bootstrap's own API server, which installs the cluster"}
		},
	}
}

func (k *kind) bootstrap() bool { return k == bootstrapKind || k == openShiftsBootstrapKind }

// Parts of nodes of an ingress group.
const (
	partAnswers = firstOwn + iota
	partReady
	partHere
	partOwn
)

var ingressParts = append(slices.Clone(common),
	part{works: "has a router that answers", fails: "has no router that answers"},
	part{works: "has a router that is ready", fails: "has no router that is ready"},
	part{works: "has, by the last answer of the API, a router of this ingress controller", fails: "has, by the last answer of the API, no router of this ingress controller"},
)

var ingressKind = &kind{
	parts: ingressParts,
	runs:  up, serves: func(state) bool { return false },
	health: func(s state, _ bool) vrrp.Health {
		return vrrp.Health{RouterAnswers: s.on(partAnswers), RouterReady: s.on(partReady), RouterHere: s.on(partHere)}
	},
	quality: ingressQuality,
}

// shardKind is ingressKind with routers of other ingress controllers, which may run in place of
// the controller's own.
var shardKind = &kind{
	parts: append(slices.Clone(ingressParts),
		part{works: "has no router of another ingress controller in its place", fails: "has, by the last answer of the API, a router of another ingress controller in its place"}),
	runs: up, serves: func(state) bool { return false },
	health: func(s state, api bool) vrrp.Health {
		h := ingressKind.health(s, api)
		h.RouterForeign = foreign(s)
		return h
	},
	quality: func(s state, api bool) quality {
		if foreign(s) && s.on(partAnswers) {
			return quality{never: &ownRouter, words: "a router of another ingress controller"}
		}
		return ingressQuality(s, api)
	},
}

// foreign reports whether only routers of other controllers are on the node, by the API.
func foreign(s state) bool { return !s.on(partHere) && !s.on(partOwn) }

// ingressQuality ranks routers: any router on the node's port answers for the VIP, but one that
// is not the group's own, by the API, may not know the domains (hard case 21), and one that is
// not ready is starting or stopping.
func ingressQuality(s state, _ bool) quality {
	switch here, ready := s.on(partHere), s.on(partReady); {
	case !s.on(partAnswers):
		return quality{never: &IngressRouter, words: "no router answers"}
	case here && ready:
		return quality{rank: 3, grade: 3, words: "a ready router of this ingress controller"}
	case here:
		return quality{rank: 2, grade: 2, words: "a router of this ingress controller that is not ready"}
	case ready:
		return quality{rank: 1, words: "a ready router of an unknown ingress controller"}
	}
	return quality{words: "a router of an unknown ingress controller that is not ready"}
}

const partDNS = firstOwn

var dnsKind = &kind{
	parts:  append(slices.Clone(common), part{works: "has CoreDNS answering", fails: "has no CoreDNS answering"}),
	runs:   up,
	serves: func(state) bool { return false },
	health: func(s state, _ bool) vrrp.Health { return vrrp.Health{DNS: s.on(partDNS)} },
	quality: func(s state, _ bool) quality {
		if s.on(partDNS) {
			return quality{rank: 1, grade: 1, words: "a CoreDNS that answers"}
		}
		return quality{words: "no CoreDNS that answers"}
	},
}

func (k *kind) all() state { return 1<<len(k.parts) - 1 }

func (k *kind) failures(s state) int { return bits.OnesCount8(uint8(k.all() &^ s)) }

// describe lists what does not work; of a host that is down, only that.
func (k *kind) describe(s state) []string {
	if s == k.all() {
		return nil
	}
	if !s.works(partHost) && (!k.bootstrap() || s.works(partLifetime)) {
		return []string{k.parts[partHost].fails}
	}
	var out []string
	for i, p := range k.parts {
		if !s.works(i) {
			out = append(out, p.fails)
		}
	}
	return out
}
