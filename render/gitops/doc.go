// Package gitops reads the objects that describe clusters in GitOps repositories,
// ClusterInstance and AgentClusterInstall with its ClusterDeployment, as an install-config and
// an agent-config: one model, one set of rules, and problems that name the place in the object.
// Secrets are not read.
//
// The fields are those of stolostron/siteconfig api/v1alpha1 and openshift/assisted-service
// api/hiveextension/v1beta1 and api/v1beta1, interpreted as the assisted installer does.
package gitops
