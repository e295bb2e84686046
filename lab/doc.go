// Package lab is a cluster of network namespaces that runs what vipgen rendered:
// each node with its own files, its pods run from their manifests as kubelet
// would, and its units as systemd would. The parts are packages of their own
// below this one.
package lab
