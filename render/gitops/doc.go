// Package gitops reads the objects that describe clusters in GitOps repositories,
// ClusterInstance, and AgentClusterInstall with its ClusterDeployment, as the
// install-config and the agent-config that they stand for: one model, one set of
// rules, and problems that name the place in the object. Secrets are not read.
//
// The fields are those of stolostron/siteconfig api/v1alpha1 and
// openshift/assisted-service api/hiveextension/v1beta1 and api/v1beta1; what
// becomes of them is what the assisted installer makes of them.
package gitops
