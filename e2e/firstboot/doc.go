// Package firstboot boots nodes with systemd, D-Bus, NetworkManager and podman: what
// vipgen's units do on an empty disk, with a registry that is away, when the network
// changes, and after a reboot, beside stand-ins of the units that OpenShift's operator
// lays on a node (directory operator, by the operator contract in package assets).
package firstboot
