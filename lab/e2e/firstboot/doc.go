// Package firstboot boots nodes with systemd, D-Bus, NetworkManager and podman: what
// vipgen's units do on an empty disk, with a registry that is away, when the network
// changes, and after a reboot, beside stand-ins of the units that OpenShift's operator
// lays on a node (directory operator, by the operator contract in package assets). With
// a kubelet and containerd (directory kubelet) it shuts them down: what clients of the
// API VIP see when its holder is rebooted or powered off.
package firstboot
