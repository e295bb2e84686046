// Package v1alpha1 holds vipgen's two documents: VIPConfig, which users write, and
// ClusterConfig, which the agent on every node reads; and Node, the facts that only a node
// knows. Each kind has its types, its defaults and its validation in files of those names.
package v1alpha1

// APIVersion is the apiVersion of both documents.
const APIVersion = "vipgen.io/v1alpha1"

// Kinds of the documents.
const (
	KindVIPConfig     = "VIPConfig"
	KindClusterConfig = "ClusterConfig"
)
