package chaos

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/lab"
)

// Kind is a kind of fault.
type Kind string

// Kinds of faults.
const (
	power            Kind = "power"
	link             Kind = "link"
	flap             Kind = "flap"
	killKeepalived   Kind = "kill-keepalived"
	freezeKeepalived Kind = "freeze-keepalived"
	killWorker       Kind = "kill-haproxy-worker"
	killMaster       Kind = "kill-haproxy-master"
	freezeHAProxy    Kind = "freeze-haproxy"
	killAgent        Kind = "kill-agent"
	freezeAgent      Kind = "freeze-agent"
	stopContainer    Kind = "stop-container"
	killContainer    Kind = "kill-container"
	killAPI          Kind = "kill-api"
	stopAPI          Kind = "stop-api"
	freezeAPI        Kind = "freeze-api"
	stopMCS          Kind = "stop-machine-config"
	stopRouter       Kind = "stop-router"
	routerNotReady   Kind = "router-not-ready"
	moveRouter       Kind = "move-router"
	partition        Kind = "partition"
	flush            Kind = "flush"
	staleVIP         Kind = "stale-vip"
	removeManifest   Kind = "remove-manifest"
	timing           Kind = "timing"
	dns              Kind = "dns"
	changeVIP        Kind = "change-vip"
	badConfig        Kind = "bad-config"
	renumber         Kind = "renumber"
	load             Kind = "load"
	allHAProxies     Kind = "all-haproxies"
	allAPIs          Kind = "all-apis"
	vrrpFlood        Kind = "vrrp-flood"
	mdnsFlood        Kind = "mdns-flood"
	oddNode          Kind = "odd-node"
	deletedNode      Kind = "deleted-node"
	crashLoop        Kind = "crash-loop"
	oddLink          Kind = "odd-link"
	deletedApart     Kind = "deleted-apart"
	crowd            Kind = "crowd"
	halfAPI          Kind = "half-api"
	fullEtcd         Kind = "full-etcd"
	readOnly         Kind = "read-only"
	fullRun          Kind = "full-run"
	noProcesses      Kind = "no-processes"
	oddEvents        Kind = "odd-events"
	spoof            Kind = "arp-spoof"
	killDaemon       Kind = "kill-routing-daemon"
	resetSessions    Kind = "reset-sessions"
	reloadRouter     Kind = "reload-router"
	dropBFD          Kind = "drop-bfd"
	floodRoutes      Kind = "flood-routes"
)

// part is a part of a node or of the cluster that a fault affects. Two faults of the same part are
// not planned at the same time: the undo of one would undo the other.
type part uint32

const (
	partKeepalived part = 1 << iota
	partHAProxy
	partFirewall
	partCoreDNS
	partMDNS
	partAPI
	partMCS
	partRouter
	partLink
	partFile   // cluster.yaml of a node: with half a file, a node boots without network
	partConfig // cluster.yaml of all nodes
	partTopology
	partObject  // the Node of a node
	partGuard   // the rules that drop VRRP packets of other hosts
	partLinks   // links besides the network's
	partRun     // /run, which units that start with a node write to
	partClaims  // what its agent alone can do: answer hosts that claim its address, give way when its Node is odd
	partRouting // BGP of the router of a node
	partNode    = partKeepalived | partHAProxy | partFirewall | partCoreDNS | partMDNS | partAPI | partMCS | partRouter | partLink | partFile | partRun
)

// place is the selection of nodes that a fault can affect.
type place int

const (
	anyNode place = iota
	controlPlane
	routerHost
	someNodes // several nodes, not all
	allControlPlane
	wholeCluster
	oneRack // the nodes of a rack
)

// kind holds the properties of a kind of fault for planning.
type kind struct {
	Kind
	place place
	parts part
	// most and least bound the duration; zero for instantaneous faults.
	least, most time.Duration
	// what has the variants, such as the container to kill, with the part that each affects.
	what []variant
	// impairs is set if the node may be unable to hold a VIP meanwhile.
	impairs bool
	// title describes the fault for people.
	title string
}

type variant struct {
	name  string
	parts part
}

// jobs are the containers of a node by the names of variants. Those of HAProxy's pod are only on
// the control plane.
var (
	everywhere = []variant{{"keepalived", partKeepalived}, {"coredns", partCoreDNS}, {"mdns-publisher", partMDNS}}
	withProxy  = append([]variant{{"haproxy", partHAProxy}, {"firewall", partFirewall}}, everywhere...)
	daemons    = []variant{{"keepalived", partKeepalived}, {"haproxy", partHAProxy}, {"coredns", partCoreDNS}}
	podsOf     = []variant{{"keepalived", partKeepalived}, {"haproxy", partHAProxy | partFirewall}, {"coredns", partCoreDNS}, {"mdns-publisher", partMDNS}}
)

const second = time.Second

// kinds lists all kinds, in the order of the documentation.
var kinds = []kind{
	{power, anyNode, partNode, 1 * second, 6 * second, nil, true, "loses power, and boots again"},
	{link, anyNode, partLink | partKeepalived, 300 * time.Millisecond, 6 * second, nil, true, "its link goes down, and up again"},
	{flap, anyNode, partLink | partKeepalived, 1 * second, 4 * second, nil, true, "its link goes down and up, again and again"},
	{killKeepalived, anyNode, partKeepalived, 0, 0, nil, true, "keepalived is killed"},
	{freezeKeepalived, anyNode, partKeepalived, 500 * time.Millisecond, 6 * second, nil, true, "keepalived is suspended, and resumes"},
	{killWorker, controlPlane, partHAProxy, 0, 0, nil, true, "HAProxy's worker is killed"},
	{killMaster, controlPlane, partHAProxy, 0, 0, nil, true, "HAProxy's master is killed"},
	{freezeHAProxy, controlPlane, partHAProxy, 1 * second, 8 * second, nil, true, "HAProxy is suspended, and resumes"},
	{killAgent, controlPlane, 0, 0, 0, withProxy, true, "an agent is killed"},
	{freezeAgent, controlPlane, partHAProxy | partFirewall | partRouter | partClaims, 1 * second, 8 * second, append(withProxy, variant{allJobs, partNode}), true, "an agent, or all of them, are suspended, and resume"},
	{stopContainer, controlPlane, 0, 0, 0, withProxy, true, "a container is terminated (SIGTERM)"},
	{killContainer, anyNode, 0, 0, 0, everywhere, true, "all processes of a container are killed at once"},
	{killAPI, controlPlane, partAPI, 1 * second, 8 * second, nil, false, "its API server is killed, and starts again"},
	{stopAPI, controlPlane, partAPI, 1 * second, 6 * second, nil, false, "its API server shuts down gracefully, and starts again"},
	{freezeAPI, controlPlane, partAPI, 1 * second, 8 * second, nil, false, "its API server is suspended, and resumes"},
	{stopMCS, controlPlane, partMCS, 1 * second, 8 * second, nil, false, "its machine config server stops, and starts again"},
	{stopRouter, routerHost, partRouter, 1 * second, 6 * second, nil, true, "its router stops, and starts again"},
	{routerNotReady, routerHost, partRouter, 1 * second, 6 * second, nil, false, "its router's pod is not ready for a while"},
	{moveRouter, routerHost, partRouter, 1 * second, 6 * second, nil, true, "its router stops, and one starts on a node without"},
	{partition, someNodes, partTopology, 1 * second, 10 * second, nil, false, "are cut off from the others, until the network heals"},
	{flush, anyNode, partFirewall | partGuard, 0, 0, nil, false, "all nftables rules are flushed"},
	{staleVIP, anyNode, partKeepalived | partConfig, 500 * time.Millisecond, 3 * second, nil, true, "its keepalived pod stops, its link gets VIPs with another prefix length, and the pod starts again"},
	{removeManifest, controlPlane, 0, 1 * second, 5 * second, podsOf, true, "the manifest of a pod is removed, and restored"},
	{timing, wholeCluster, partConfig, 4 * second, 10 * second, nil, false, "cluster.yaml has another advertisement interval for a while"},
	{dns, wholeCluster, partConfig, 4 * second, 10 * second, nil, false, "cluster.yaml has one more DNS record for a while"},
	{changeVIP, wholeCluster, partConfig, 8 * second, 12 * second, nil, false, "cluster.yaml has another API VIP for a while"},
	{badConfig, anyNode, partConfig | partFile, 1 * second, 6 * second, named(badConfigs, func(b badFile) string { return b.name }), false, "its cluster.yaml is invalid for a while"},
	{renumber, anyNode, partObject | partFile | partLink | partKeepalived | partAPI | partRun, 8 * second, 12 * second, nil, true, "has other addresses for a while"},
	{load, wholeCluster, 0, 1 * second, 4 * second, nil, false, "busy loops take every core"},
	{allHAProxies, allControlPlane, partHAProxy, 1 * second, 5 * second, nil, true, "every HAProxy is suspended, and resumes"},
	{allAPIs, allControlPlane, partAPI, 1 * second, 6 * second, nil, true, "every API server is killed, and starts again"},
	{vrrpFlood, wholeCluster, partGuard, 2 * second, 8 * second, named(attack.VRRPs, func(v attack.VRRP) string { return v.Name }), false, "a host that is not a node floods all nodes with VRRP advertisements"},
	{mdnsFlood, wholeCluster, 0, 2 * second, 6 * second, named(mdnsKinds, func(m mdnsPacket) string { return m.name }), false, "a host that is not a node floods all nodes with mDNS records"},
	{oddNode, anyNode, partObject | partClaims, 6 * second, 12 * second, named(oddities, itself), true, "its Node has odd content for a while"},
	{deletedNode, anyNode, partNode | partObject | partTopology, 14 * second, 18 * second, nil, true, "is powered off, deleted and powered on with expired credentials, until it is a node again"},
	{crashLoop, controlPlane, 0, 2 * second, 6 * second, daemons, true, "a daemon is killed each time that it starts"},
	{oddLink, anyNode, partLinks, 1 * second, 6 * second, named([]string{"a+b", "x.y-z", "\u00e9{}#"}, itself), false, "a link with an odd name is added, and removed"},
	{deletedApart, anyNode, partNode | partObject | partTopology, 14 * second, 18 * second, nil, true, "is cut off, deleted and joins the network again, until it is a node again"},
	{crowd, anyNode, 0, 2 * second, 8 * second, named([]string{crowdClients, crowdMonitors}, itself), false, "keeps 64 connections open at the port of every other node where holders name their clients, or at each of its own agents' monitoring ports"},
	{halfAPI, controlPlane, partAPI, 1 * second, 8 * second, nil, false, "its API server answers health checks and hangs on all other requests"},
	{fullEtcd, wholeCluster, 0, 1 * second, 6 * second, nil, false, "etcd refuses writes"},
	{readOnly, controlPlane, partConfig, 1 * second, 8 * second, daemons, false, "the configuration that an agent writes for a daemon is read-only"},
	{fullRun, anyNode, partRun, 1 * second, 8 * second, nil, false, "its /run has no space left"},
	{noProcesses, controlPlane, 0, 1 * second, 6 * second, daemons, true, "a container cannot start processes and threads"},
	{oddEvents, anyNode, partKeepalived, 1 * second, 6 * second, named([]string{eventsFIFO, eventsLarge}, itself), false, "its record of events is a FIFO, or has a gigabyte"},
	{spoof, wholeCluster, partTopology | partClaims, 2 * second, 8 * second, nil, false, "a host that is not a node claims the addresses of all nodes by ARP and ND"},
	{killDaemon, oneRack, partRouting, 500 * time.Millisecond, 6 * second, named([]string{"zebra", "bfdd", "bgpd"}, itself), true, "a daemon of their rack's router is killed, and starts again"},
	{resetSessions, oneRack, partRouting, 0, 0, nil, true, "their rack's router ends its BGP sessions, which open again"},
	{reloadRouter, oneRack, partRouting, 0, 0, nil, false, "their rack's router applies its configuration again"},
	{dropBFD, anyNode, partRouting, 1 * second, 6 * second, named([]string{toRouter, fromRouter}, itself), true, "BFD packets are dropped in one direction"},
	{floodRoutes, wholeCluster, 0, 2 * second, 8 * second, named([]string{lab.FloodVIPs, lab.FloodMany}, itself), false, "a hostile router announces the VIPs and a default route, or too many routes, to nodes"},
}

// routedKinds are the faults of clusters whose VIPs routers know by BGP. The last five are of no others.
var routedKinds = []Kind{power, link, flap, killWorker, killMaster, freezeHAProxy, allHAProxies, killAgent, freezeAgent, stopContainer, killContainer,
	killAPI, stopAPI, freezeAPI, allAPIs, stopRouter, removeManifest,
	killDaemon, resetSessions, reloadRouter, dropBFD, floodRoutes}

// applies reports whether a kind of fault is for clusters whose VIPs routers know by BGP, or for the
// others.
func (k Kind) applies(routed bool) bool {
	i := slices.Index(routedKinds, k)
	return routed && i >= 0 || !routed && i < slices.Index(routedKinds, killDaemon)
}

// named returns variants that differ only by their names.
func named[T any](list []T, name func(T) string) (out []variant) {
	for _, x := range list {
		out = append(out, variant{name: name(x)})
	}
	return out
}

func itself(s string) string { return s }

// Kinds returns the names of all kinds of faults.
func Kinds() (out []Kind) {
	for _, k := range kinds {
		out = append(out, k.Kind)
	}
	return out
}

// title returns the description of a kind of fault.
func (k Kind) title() string { return kindOf(k).title }

// deletes reports whether the fault deletes a Node.
func (k Kind) deletes() bool { return k == deletedNode || k == deletedApart }

// kindOf returns the kind of a name; the zero value if there is none.
func kindOf(name Kind) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.Kind == name })
	if i < 0 {
		return kind{Kind: name}
	}
	return kinds[i]
}
