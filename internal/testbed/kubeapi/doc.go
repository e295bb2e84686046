// Package kubeapi is the Kubernetes API of a cluster in a lab or a test: an API server on every
// control-plane node, all with the same objects.
//
// [NewReal] runs the real etcd and kube-apiserver. [NewStandIn] serves from this process the
// part of the API that clients of a cluster's nodes use, at once and with a thousandth of the
// memory: it replaces the real one where that is not installed or would cost more than the
// tested program. A test compares both.
package kubeapi
