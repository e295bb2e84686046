package migration

import (
	"fmt"
	"strings"
)

// Wait is a reason for a pending migration to wait. These are all, next to those of package
// vrrp for a node that is left out, and a mode file that is invalid.
type Wait int

// Reasons of the node itself. Its own status has them after "this node", that of others after
// its name and "not ready".
const (
	WaitCluster Wait = iota
	WaitBootstrap
	WaitAnnotation
	WaitConfiguration
	WaitRolledBack
)

// Reasons of the cluster. Those about a node stand after its name.
const (
	waitServer Wait = iota + WaitRolledBack + 1
	waitOperator
	waitUpdate
	waitKubelet
	waitAgent
	waitNotReady
	waitOtherTarget
	waitAgreement
	waitInstant
	waitPlanned
	waitClock
)

// waits holds, for each reason, its text in status and log (migration to other VRRP settings
// pending), and what to do, as in docs/upgrade.md.
var waits = [...]struct{ text, next string }{
	WaitCluster:       {"cluster.yaml is invalid", "the agent's log has the problem"},
	WaitBootstrap:     {"the bootstrap, %s, is still there", "wait for the end of the installation"},
	WaitAnnotation:    {"waiting for the bootstrap to leave the annotations of ConfigMap etcd-endpoints in openshift-etcd", "wait; does the agent's log name missing rights?"},
	WaitConfiguration: {"the new configuration: %s", "it is keepalived's or the template's error: other settings, or the template of this release"},
	WaitRolledBack:    {"rolled back at %s: %s still advertised %s (%s)", "repair that node, or leave it out"},
	waitServer:        {"an API server: none vouches for the list of nodes", "vipgen_api_reachable, the agent's log"},
	waitOperator:      {"the machine config operator does not say yet how far it is", "oc get node NODE -o yaml: annotations machineconfiguration.openshift.io"},
	waitUpdate:        {"its update is not done (%s)", "oc get machineconfigpool; is it paused or degraded?"},
	waitKubelet:       {"its kubelet is %s, that of %s is %s", "finish the update of OpenShift"},
	waitAgent:         {"no agent there announces its VRRP settings", "start the node, leave it out, or power it off and delete its Node"},
	waitNotReady:      {"not ready: %s", "the reason of that node"},
	waitOtherTarget:   {"it is ready for %s, not for %s", "give it the same mode file or cluster.yaml"},
	waitAgreement:     {"%s to agree to %s", "wait; if it lasts, its agent's log"},
	waitInstant:       {"the next instant: not all had agreed in time", "wait"},
	waitPlanned:       {"another planned time: %s passed before all nodes had agreed", "write a mode file with a later time"},
	waitClock:         {"it plans for %s, which is %v ahead: its clock or this node's is wrong", "chronyc tracking on both"},
}

// Text returns the text of a reason with its subjects.
func (w Wait) Text(subject ...any) string { return fmt.Sprintf(waits[w].text, subject...) }

// String returns the text of a reason, of which the subjects are left open.
func (w Wait) String() string {
	return strings.NewReplacer("%s", "...", "%v", "...").Replace(waits[w].text)
}
