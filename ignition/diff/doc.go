// Package diff compares what two sets of MachineConfigs, Ignition configs and
// manifests give to the nodes of clusters, decoded, and says what OpenShift's
// machine config operator will do about the difference.
package diff
