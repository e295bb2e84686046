// Package pod runs the static pods of a lab's hosts as kubelet would: from the manifests in the
// host's manifest directory, with their init containers, volumes, capabilities, liveness probes,
// restarts and grace periods.
//
// It rejects manifests with unsupported fields instead of ignoring them. Fields without effect in a
// lab are accepted: resources, priority, tolerations, seccomp and SELinux.
package pod
