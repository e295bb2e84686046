// Package container runs containers on a lab's hosts with runc, on the host's
// network. Their images are made of the programs of this machine.
//
// A container is a process of its host: it ends when the host's power goes.
package container
