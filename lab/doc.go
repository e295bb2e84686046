// Package lab runs a rendered cluster in network namespaces: each node has its own files, its pods
// run from their manifests as under kubelet, and its units as under systemd. The packages below it
// hold the parts.
package lab
