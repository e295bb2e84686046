// Package machine provides nodes that run real kubelets: hosts of the lab (network, PID and UTS
// namespaces that end together) with a root of their own by pivot_root, and a separate tree of
// control groups.
//
// The root is a directory. It has this machine's /usr, read-only, like an operating system's image;
// /etc, /var, /run and the rest belong to the machine, so that Ignition can write to them as on a
// first boot. /proc, /sys and /dev are mounted.
//
// It needs root, Debian's util-linux and control groups of version 1.
package machine
