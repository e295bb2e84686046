// Package pods puts every static pod that vipgen renders to kubelet's own code: the
// source that reads a node's directory of manifests, its decoder and its validation.
//
// It is a module of its own, because Kubernetes takes its own versions of the
// libraries that vipgen uses newer ones of.
package pods
