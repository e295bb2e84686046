// Package rig is what tests with machines share: programs and images that were made
// on this machine, and machines with a kubelet.
package rig
