// Package nodeip chooses the address of this node and describes its interfaces (hard
// cases 9 to 11). [Choose] is a pure function of a [Snapshot], which [Read] takes from
// the kernel; [Watch] reports changes, [Wait] waits for an address, and [Write] passes
// the choice to kubelet, CRI-O and the pods.
package nodeip
