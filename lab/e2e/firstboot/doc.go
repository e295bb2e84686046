// Package firstboot tests nodes with systemd, D-Bus, NetworkManager and podman: vipgen's units on
// an empty disk, with an unreachable registry, after network changes and reboots, together with
// stand-ins for the units that OpenShift's operator installs on a node (directory operator, by the
// operator contract in package assets). With a kubelet and containerd (directory kubelet) it tests
// shutdowns: what clients of the API VIP see when its holder is rebooted or powered off.
package firstboot
