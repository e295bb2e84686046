// Package nodeip chooses the address of this node and describes its interfaces
// (hard cases 9 to 11). [Choose] decides and is a pure function of a
// [Snapshot], which [Read] takes from the kernel; [Watch] says when to look
// again, [Wait] looks until there is an address, and [Write] hands the choice
// to kubelet, CRI-O and the pods.
package nodeip
