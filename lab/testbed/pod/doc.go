// Package pod runs the static pods of a lab's hosts as kubelet would: from the
// manifests in the host's directory for them, with their init containers,
// volumes, capabilities, liveness probes, restarts and grace periods.
//
// It refuses a manifest that asks for something it does not do, so that nothing
// is left out without a word. What does not matter without a scheduler or
// another tenant is passed over: resources, priority, tolerations, seccomp and
// SELinux.
package pod
