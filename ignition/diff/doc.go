// Package diff compares the decoded content of two sets of MachineConfigs, Ignition configs and
// manifests, and predicts what OpenShift's machine config operator will do about the
// difference.
package diff
