// Package cluster tests whole clusters of real nodes: Ignition writes their roots, kubelet and
// containerd run their pods, and an etcd and an API server run on each control-plane node behind
// the API VIP. See docs/testing.md.
package cluster
