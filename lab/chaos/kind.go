package chaos

import (
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/attack"
)

// Kind names a kind of fault.
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
)

// part is what of a node, or of the cluster, a fault is about. Two faults that are
// about the same are not planned for the same moment: what one of them undoes is
// the other's.
type part uint16

const (
	ofKeepalived part = 1 << iota
	ofHAProxy
	ofFirewall
	ofCoreDNS
	ofMDNS
	ofAPI
	ofMCS
	ofRouter
	ofLink
	ofFile   // cluster.yaml of a node: what boots with half a file has no network
	ofConfig // cluster.yaml of all nodes
	ofTopology
	ofObject // the Node of a node
	ofGuard  // the rules that keep VRRP packets of strangers away
	ofLinks  // links beside that of the network
	ofNode   = ofKeepalived | ofHAProxy | ofFirewall | ofCoreDNS | ofMDNS | ofAPI | ofMCS | ofRouter | ofLink | ofFile
)

// place says which nodes a fault can hit.
type place int

const (
	anyNode place = iota
	controlPlane
	routerHost
	someNodes // several of them, not all
	allControlPlane
	wholeCluster
)

// kind is what has to be known to plan a fault.
type kind struct {
	Kind
	place place
	parts part
	// most and least bound how long it lasts; zero for what happens in a moment.
	least, most time.Duration
	// what are the variants, such as the container that is killed, with the part
	// that each is about.
	what []variant
	// impairs says that the node may be unable to hold a VIP meanwhile.
	impairs bool
	// title tells people what happens.
	title string
}

type variant struct {
	name  string
	parts part
}

// jobs are the containers of a node by the names that variants have. Those of
// HAProxy's pod are on the control plane alone.
var (
	everywhere = []variant{{"keepalived", ofKeepalived}, {"coredns", ofCoreDNS}, {"mdns-publisher", ofMDNS}}
	withProxy  = append([]variant{{"haproxy", ofHAProxy}, {"firewall", ofFirewall}}, everywhere...)
	daemons    = []variant{{"keepalived", ofKeepalived}, {"haproxy", ofHAProxy}, {"coredns", ofCoreDNS}}
	podsOf     = []variant{{"keepalived", ofKeepalived}, {"haproxy", ofHAProxy | ofFirewall}, {"coredns", ofCoreDNS}, {"mdns-publisher", ofMDNS}}
)

const second = time.Second

// kinds are all of them, in the order in which they are documented.
var kinds = []kind{
	{power, anyNode, ofNode, 1 * second, 6 * second, nil, true, "loses power, and comes back"},
	{link, anyNode, ofLink | ofKeepalived, 300 * time.Millisecond, 6 * second, nil, true, "its link goes down, and up again"},
	{flap, anyNode, ofLink | ofKeepalived, 1 * second, 4 * second, nil, true, "its link goes down and up, again and again"},
	{killKeepalived, anyNode, ofKeepalived, 0, 0, nil, true, "keepalived is killed"},
	{freezeKeepalived, anyNode, ofKeepalived, 500 * time.Millisecond, 6 * second, nil, true, "keepalived stands still, and goes on"},
	{killWorker, controlPlane, ofHAProxy, 0, 0, nil, true, "HAProxy's worker is killed"},
	{killMaster, controlPlane, ofHAProxy, 0, 0, nil, true, "HAProxy's master is killed"},
	{freezeHAProxy, controlPlane, ofHAProxy, 1 * second, 8 * second, nil, true, "HAProxy stands still, and goes on"},
	{killAgent, controlPlane, 0, 0, 0, withProxy, true, "an agent is killed"},
	{freezeAgent, controlPlane, ofHAProxy | ofFirewall | ofRouter, 1 * second, 8 * second, withProxy, true, "an agent stands still, and goes on"},
	{stopContainer, controlPlane, 0, 0, 0, withProxy, true, "a container is asked to end (SIGTERM)"},
	{killContainer, anyNode, 0, 0, 0, everywhere, true, "all processes of a container are killed at once"},
	{killAPI, controlPlane, ofAPI, 1 * second, 8 * second, nil, false, "its API server is killed, and starts again"},
	{stopAPI, controlPlane, ofAPI, 1 * second, 6 * second, nil, false, "its API server is stopped properly, and starts again"},
	{freezeAPI, controlPlane, ofAPI, 1 * second, 8 * second, nil, false, "its API server stands still, and goes on"},
	{stopMCS, controlPlane, ofMCS, 1 * second, 8 * second, nil, false, "its machine config server stops, and starts again"},
	{stopRouter, routerHost, ofRouter, 1 * second, 6 * second, nil, true, "its router stops, and starts again"},
	{routerNotReady, routerHost, ofRouter, 1 * second, 6 * second, nil, false, "its router's pod is not ready for a while"},
	{moveRouter, routerHost, ofRouter, 1 * second, 6 * second, nil, true, "its router goes, and comes where none is"},
	{partition, someNodes, ofTopology, 1 * second, 10 * second, nil, false, "are cut off from the others, until the network heals"},
	{flush, anyNode, ofFirewall | ofGuard, 0, 0, nil, false, "somebody flushes all nftables rules"},
	{staleVIP, anyNode, ofKeepalived | ofConfig, 500 * time.Millisecond, 3 * second, nil, true, "its keepalived pod goes, somebody leaves VIPs on its link with another prefix length, the pod comes back"},
	{removeManifest, controlPlane, 0, 1 * second, 5 * second, podsOf, true, "the manifest of a pod goes, and comes back"},
	{timing, wholeCluster, ofConfig, 4 * second, 10 * second, nil, false, "cluster.yaml says another advert interval for a while"},
	{dns, wholeCluster, ofConfig, 4 * second, 10 * second, nil, false, "cluster.yaml has one more DNS record for a while"},
	{changeVIP, wholeCluster, ofConfig, 8 * second, 12 * second, nil, false, "cluster.yaml has another API VIP for a while"},
	{badConfig, anyNode, ofConfig | ofFile, 1 * second, 6 * second, nil, false, "its cluster.yaml is half a file for a while"},
	{renumber, anyNode, ofObject | ofFile | ofLink | ofKeepalived | ofAPI, 8 * second, 12 * second, nil, true, "has other addresses for a while"},
	{load, wholeCluster, 0, 1 * second, 4 * second, nil, false, "busy loops take every core"},
	{allHAProxies, allControlPlane, ofHAProxy, 1 * second, 5 * second, nil, true, "every HAProxy stands still, and goes on"},
	{allAPIs, allControlPlane, ofAPI, 1 * second, 6 * second, nil, true, "every API server is killed, and starts again"},
	{vrrpFlood, wholeCluster, ofGuard, 2 * second, 8 * second, named(attack.VRRPs, func(v attack.VRRP) string { return v.Name }), false, "a host that is no node floods all nodes with VRRP advertisements"},
	{mdnsFlood, wholeCluster, 0, 2 * second, 6 * second, named(mdnsKinds, func(m mdnsPacket) string { return m.name }), false, "a host that is no node floods all nodes with mDNS records"},
	{oddNode, anyNode, ofObject, 6 * second, 12 * second, named(oddities, itself), true, "its Node has odd content for a while"},
	{deletedNode, anyNode, ofNode | ofObject | ofTopology, 14 * second, 18 * second, nil, true, "is powered off, deleted and powered on with expired credentials, until it is a node again"},
	{crashLoop, controlPlane, 0, 2 * second, 6 * second, daemons, true, "a daemon is killed each time that it starts"},
	{oddLink, anyNode, ofLinks, 1 * second, 6 * second, named([]string{"a+b", "x.y-z", "\u00e9{}#"}, itself), false, "a link with an odd name comes, and goes"},
}

// named are variants that differ by their names alone.
func named[T any](list []T, name func(T) string) (out []variant) {
	for _, x := range list {
		out = append(out, variant{name: name(x)})
	}
	return out
}

func itself(s string) string { return s }

// Kinds are the names of all kinds of faults.
func Kinds() (out []Kind) {
	for _, k := range kinds {
		out = append(out, k.Kind)
	}
	return out
}

// title says what happens in a fault of that kind.
func (k Kind) title() string { return kindOf(k).title }

// kindOf returns the kind of that name; one that there is not has no title.
func kindOf(name Kind) kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.Kind == name })
	if i < 0 {
		return kind{Kind: name}
	}
	return kinds[i]
}
