// Package rig is shared by the tests with machines: it provides programs and images built on this
// machine, and machines with a kubelet.
package rig
