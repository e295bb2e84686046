// Package cluster has whole clusters of real nodes as its tests: Ignition writes their
// roots, kubelet and containerd run their pods, and behind the API VIP are an etcd and
// an API server on each control-plane node. See docs/testing.md.
package cluster
