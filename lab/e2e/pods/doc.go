// Package pods tests every rendered static pod with kubelet's code: the source that reads a node's
// manifest directory, its decoder and its validation.
//
// It is a module of its own, because Kubernetes pins other versions of libraries than vipgen uses.
package pods
