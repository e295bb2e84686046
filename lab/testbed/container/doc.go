// Package container runs containers on a lab's hosts with runc, on the host's network, including
// those that systemd units start with podman. The programs of this machine are their images.
//
// A container is a process of its host: it ends when the host is powered off.
package container
