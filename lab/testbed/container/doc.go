// Package container runs containers on a lab's hosts with runc, on the host's
// network, also as the systemd units that run the agent with podman ask for them. Their
// images are made of the programs of this machine.
//
// A container is a process of its host: it ends when the host's power goes.
package container
