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
// pending). docs/upgrade.md has the remedies.
var waits = [...]string{
	WaitCluster:       "cluster.yaml is invalid",
	WaitBootstrap:     "the bootstrap, %s, is still there",
	WaitAnnotation:    "waiting for the bootstrap to leave the annotations of ConfigMap etcd-endpoints in openshift-etcd",
	WaitConfiguration: "the new configuration: %s",
	WaitRolledBack:    "rolled back at %s: %s still advertised %s (%s)",
	waitServer:        "an API server: none vouches for the list of nodes",
	waitOperator:      "the machine config operator has not reported its progress yet",
	waitUpdate:        "its update is not done (%s)",
	waitKubelet:       "its kubelet is %s, that of %s is %s",
	waitAgent:         "no agent there announces its VRRP settings",
	waitNotReady:      "not ready: %s",
	waitOtherTarget:   "it is ready for %s, not for %s",
	waitAgreement:     "%s to agree to %s",
	waitInstant:       "the next instant: not all had agreed in time",
	waitPlanned:       "another planned time: %s passed before all nodes had agreed",
	waitClock:         "it plans for %s, which is %v ahead: its clock or this node's is wrong",
}

// Text returns the text of a reason with its subjects.
func (w Wait) Text(subject ...any) string { return fmt.Sprintf(waits[w], subject...) }

// String returns the text of a reason, of which the subjects are left open.
func (w Wait) String() string {
	return strings.NewReplacer("%s", "...", "%v", "...").Replace(waits[w])
}
