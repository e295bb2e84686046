// Package apitest runs API servers in tests: kubeapi's stand-ins, or the real one with etcd. It
// is apart from package daemon so that few test programs link HTTP and Kubernetes' libraries.
package apitest
