// Package machine makes a node that real kubelets run on: a host of the lab
// (network, PID and UTS namespaces that end together) with a root of its own, which
// its processes have pivoted to, and its own tree of control groups.
//
// The root is a directory. This machine's /usr is in it, read-only, as an operating
// system's image brings it; /etc, /var, /run and the rest are the machine's own, so
// that Ignition can write to them as it does on a first boot. What a directory
// cannot be is mounted: /proc, /sys and /dev.
//
// It needs root, Debian's util-linux and control groups of version 1.
package machine
