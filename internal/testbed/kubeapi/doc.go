// Package kubeapi is the Kubernetes API of a cluster of the lab, or of a test: an API
// server on every control-plane node, with the same objects behind all of them.
//
// [NewReal] runs the real etcd and kube-apiserver. [NewStandIn] serves, from this
// process, as much of the API as those who watch a cluster's nodes use, in a
// thousandth of the memory and at once: it stands in for the real one where that
// is not installed or would cost more than what is looked at. A test holds it against
// the real one.
package kubeapi
