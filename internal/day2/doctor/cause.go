package doctor

import "cmp"

// Sure is the certainty of a cause.
type Sure string

// Certain: events of the nodes themselves show it, and nothing contradicts it. Likely: they
// fit, but may have another cause. Unknown: there is not enough evidence.
const (
	Certain Sure = "certain"
	Likely  Sure = "likely"
	Unknown Sure = "unknown"
)

// Code names a kind of cause, for programs. Names do not change.
type Code string

// Causes.
const (
	AgentStopped    Code = "agent-stopped"    // by a signal: a shutdown, or the pod was replaced
	AgentFailed     Code = "agent-failed"     // without a signal
	AgentKilled     Code = "agent-killed"     // by force, and keepalived with it
	NodeDown        Code = "node-down"        // power loss, reset or crash
	AllDown         Code = "all-down"         // no node that can hold the VIP ran
	KeepalivedDied  Code = "keepalived-died"  // although it was wanted
	LinkLost        Code = "link-lost"        // the interface went down
	CutOff          Code = "cut-off"          // both ran, and advertisements were lost
	NodeLate        Code = "node-late"        // paused, or without CPU time
	HAProxyDown     Code = "haproxy-down"     // or without an API server
	RedirectMissing Code = "redirect-missing" // of the VIP to HAProxy
	APINotReady     Code = "api-not-ready"    // the local API server, or all that HAProxy knows
	MachineConfig   Code = "machine-config"   // the machine config server
	RouterDown      Code = "router-down"      // of the ingress controller
	DNSDown         Code = "dns-down"         // CoreDNS
	CheckFailed     Code = "check-failed"     // another check, or several
	BetterNode      Code = "better-node"      // the priority of another node rose
	SettingsChanged Code = "settings-changed" // VRRP settings, as in a migration
	LeftOut         Code = "left-out"         // the node leaves the VIP out
	SessionLost     Code = "session-lost"     // a node's session with a router, for another reason than these
	HoldTimeExpired Code = "hold-time-expired"
	RouterRefused   Code = "router-refused" // by a NOTIFICATION
	OtherSpeaker    Code = "other-speaker"  // on the node has the session with a router
	BFDDown         Code = "bfd-down"       // of a session with a router
	BFDMissing      Code = "bfd-missing"    // it does not come up
	AnotherHost     Code = "another-host"   // not a node of the cluster
	ReceivedAgain   Code = "heard-again"    // both nodes that held it received an advertisement: one yields
	FirstHolder     Code = "first-holder"   // no node held it before
	NoRecord        Code = "no-record"      // of the previous holder
	NotKnown        Code = "unknown"        // no records fit
)

// Cause is why a VIP moved.
type Cause struct {
	Code Code   `json:"code"`
	Sure Sure   `json:"sure"`
	Node string `json:"node,omitempty"` // where the cause is
	Text string `json:"text"`
	// Or is an alternative, if it is not certain.
	Or string `json:"or,omitempty"`
	// Next is the next step for the user.
	Next string `json:"next,omitempty"`
}

func (c Cause) complete() Cause {
	c.Next = cmp.Or(c.Next, next[c.Code])
	if c.Sure == Likely {
		c.Or = cmp.Or(or[c.Code], "something else, of which events are missing or of another time")
	}
	return c
}

// Planned reports whether the cause is part of normal operation: intended by the user, or a
// move to a better node.
func (c *Cause) Planned() bool {
	switch c.Code {
	case AgentStopped, SettingsChanged, BetterNode, FirstHolder:
		return c.Sure != Unknown
	}
	return false
}

// or maps causes that are likely by their rules to the alternative.
var or = map[Code]string{
	AgentKilled:     "the node was cut off or paused first, and the agent ended later; or it received a signal to end, and could not record that",
	NodeDown:        "the node was cut off or paused first, and was reset for that; or its last events were not written",
	LinkLost:        "the node lost its power or ends, and the link went first, as its record ends here; or a check made keepalived give the VIP up",
	AllDown:         "a node ran whose record was not read, or that is not back, and could not hold the VIP",
	AgentStopped:    "the agent failed: its record ends before that",
	CutOff:          "the holder was paused, or keepalived on it hung",
	NodeLate:        "advertisements were lost on the network",
	HAProxyDown:     "the redirect was removed, and HAProxy ended later",
	RedirectMissing: "HAProxy ended, and its own check failed later than the record says",
	CheckFailed:     "the weights of checks were changed",
	BetterNode:      "the priority of the holder fell",
	SessionLost:     "the router or the network ended it for a reason that the node does not see",
	LeftOut:         "the cause concerns another VIP",
	FirstHolder:     "a node held it whose record was not read",
}

// next maps causes to what to do about them.
var next = map[Code]string{
	AgentFailed:     "see the log of the keepalived container: crictl logs -p",
	AgentKilled:     "see why on the node: journalctl -k (out of memory?), the last log of the container: crictl logs -p",
	NodeDown:        "see the node's console or BMC log; journalctl -b -1 -e on the node shows its last messages",
	AllDown:         "see what the nodes have in common: power, hypervisor, storage, or a roll-out to all of them at once",
	KeepalivedDied:  "see the log of the keepalived container around that time, and journalctl -k for a kill",
	LinkLost:        "see the switch port, the cable or the bond: journalctl -k shows the link",
	CutOff:          "see what lies between the nodes: switch, VLAN, firewall rules for protocol 112 (vipgen ports lists what has to be open)",
	NodeLate:        "see what the node did then: CPU steal of the hypervisor, a snapshot or live migration, a full disk; vipgen.yaml can lengthen the interval",
	HAProxyDown:     "see the log of the haproxy container on the node",
	RedirectMissing: "see the log of the firewall container on the node: something may flush nftables",
	APINotReady:     "see the log of kube-apiserver on the node, and etcd",
	MachineConfig:   "see pod machine-config-server on the node",
	RouterDown:      "see the router pods: oc get pods -n openshift-ingress -o wide",
	DNSDown:         "see the log of the coredns container on the node",
	CheckFailed:     "see the log of the keepalived container on the node: it names each check that fails",
	SessionLost:     "see the router's log, and what lies between: sudo vipgen-agent status on the node shows the session",
	HoldTimeExpired: "see whether the router was down, or the link to it: BFD notices that sooner",
	RouterRefused:   "see the router's log, and compare its neighbor with vipgen bgp peer-config: AS numbers, password, source address, a second speaker on the node",
	OtherSpeaker:    "stop that speaker, or hand it the routes: announce: table",
	BFDDown:         "see whether the router or the link to it was down, or either side had no CPU time: vipgen.yaml can lengthen bfd.interval",
	BFDMissing:      "configure BFD on the router (vipgen bgp peer-config), and open UDP port 3784",
	AnotherHost:     "find the host: sudo vipgen-agent vrrp scan on a node lists the senders of VRRP packets; vipgen vr-ids finds clusters with the same virtual router ID",
	NoRecord:        "also read the record of that node",
	NotKnown:        "see the logs of the keepalived containers around that time",
}
