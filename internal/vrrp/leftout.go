package vrrp

import (
	"fmt"
	"strings"
)

// LeftOut is a reason for a node to take no part in the election of VIPs of its role. These
// are all.
type LeftOut int

// Faults, if they last.
const (
	LeftOutUnregistered LeftOut = iota // hard case 3
	LeftOutAlone                       // hard case 2
	LeftOutMismatch                    // hard cases 15 and 37
	LeftOutInDoubt                     // hard case 36
	LeftOutNoAddress
	LeftOutPairSplit     // hard case 14
	LeftOutUnknownSource // hard case 39
	LeftOutNoPeer
	LeftOutLearning  // agent/migration
	LeftOutJoining   // agent/keepalived/membership
	LeftOutOperators // agent/keepalived/membership
	LeftOutBootstrapUnknown
)

// By design, or on request.
const (
	LeftOutByModeFile LeftOut = iota + LeftOutBootstrapUnknown + 1
	LeftOutLoadBalancer
	LeftOutArbiter       // hard case 32
	LeftOutRemoteWorker  // hard case 9
	LeftOutElsewhere     // an ingress VIP
	LeftOutElsewhereAPI  // another VIP
	LeftOutBootstrapGone // hard case 8
	LeftOutBootstrapLate // hard case 8
)

// leftOut holds, for each reason, its text in status, doctor, the log (VIPs left out), the
// metric vipgen_left_out and keepalived.conf, in which %s is a VIP, a type or names of nodes;
// and what to do, as in docs/runbooks.md.
var leftOut = [...]struct{ text, next string }{
	LeftOutUnregistered:     {"this node is not registered with the cluster", "oc get node NODE; kubelet's log, oc get csr"},
	LeftOutAlone:            {"no other control-plane node is known", "vipgen_api_reachable, vipgen_nodes, and the agent's log, which names missing rights"},
	LeftOutMismatch:         {"the cluster lists this node at an address, or in a role, that it does not have", "compare oc get node NODE -o wide with ip address on the node"},
	LeftOutInDoubt:          {"the holder of a VIP does not know this node, and no API server says that the cluster has it", "the holder's vipgen_nodes and log; was the node deleted while it was cut off? Let it reach an API server"},
	LeftOutNoAddress:        {"no address of the family of %s on this node", "the node's network configuration; vipgen-agent node-ip show says why addresses do not count"},
	LeftOutPairSplit:        {"the VIPs move together, and this node has no address of one of their families", "give the node an address of both families"},
	LeftOutUnknownSource:    {"the other nodes do not know this node's address in the network of %s", "the Node must list it: kubelet's --node-ip, or OVN-Kubernetes' annotation k8s.ovn.org/host-cidrs"},
	LeftOutNoPeer:           {"no other node's address in the network of %s is known", "the Nodes of the others must list theirs, in the same way; with multicast none has to be known"},
	LeftOutLearning:         {"this node is finding out which VRRP settings the others have", "wait 5 s. If it lasts: it is not registered, or has no list of nodes (vipgen_api_reachable)"},
	LeftOutJoining:          {"the other nodes are still getting to know this one", "wait 17 s. If it lasts: the holder's vipgen_nodes and log"},
	LeftOutOperators:        {"OpenShift's own keepalived may not know this node yet on %s", "wait 3 minutes; the logs of keepalived on these nodes"},
	LeftOutBootstrapUnknown: {"the holder of a VIP does not know this bootstrap host any more", "nothing, if the control plane serves; else its logs"},
	LeftOutByModeFile:       {"the mode file leaves it out (without)", "remove its name from without in /etc/keepalived/monitor-user.conf, or from the MachineConfig with that file"},
	LeftOutLoadBalancer:     {"the nodes hold no VIPs: the load balancer is %s", "nothing: spec.loadBalancer.type of vipgen.yaml asks for it"},
	LeftOutArbiter:          {"OpenShift's own keepalived does not know arbiters", "nothing; with UserManaged, arbiters take part"},
	LeftOutRemoteWorker:     {"this node is in no network with a VIP", "nothing, for a remote worker; else compare ip address with machineNetwork of the install-config"},
	LeftOutElsewhere:        {"this node has no address in the network of %s", "nothing; an address in that network if it shall hold the VIP"},
	LeftOutElsewhereAPI:     {"other nodes have addresses in the network of %s, and this node has none", "nothing; an address in that network if it shall hold the VIP"},
	LeftOutBootstrapGone:    {"the API server of this bootstrap host has gone", "nothing: the control plane holds the VIPs. While it does not: the log of kube-apiserver on this host"},
	LeftOutBootstrapLate:    {"the cluster does without this bootstrap host", "nothing: power it off"},
}

// LeftOutReasons returns all reasons.
func LeftOutReasons() (all []LeftOut) {
	for why := range leftOut {
		all = append(all, LeftOut(why))
	}
	return all
}

// String returns the text of a reason, of which the subject is left open.
func (why LeftOut) String() string { return strings.ReplaceAll(leftOut[why].text, "%s", "...") }

// Text returns the text of a reason with its subject, if it has one.
func (why LeftOut) Text(subject ...any) string { return fmt.Sprintf(leftOut[why].text, subject...) }

// Next returns what to do.
func (why LeftOut) Next() string { return leftOut[why].next }

// Intended reports whether the reason is by design or on request, so that no alert is due.
func (why LeftOut) Intended() bool { return why >= LeftOutByModeFile }

// ParseLeftOut returns the reason that a node published, possibly after the name of a group or
// an instance; ok is false for one of another version.
func ParseLeftOut(text string) (why LeftOut, ok bool) {
	for i := range leftOut {
		before, _, _ := strings.Cut(leftOut[i].text, "%s")
		if strings.Contains(text, before) {
			return LeftOut(i), true
		}
	}
	return 0, false
}
