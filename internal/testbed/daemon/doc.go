// Package daemon lets tests put what vipgen renders to the real programs:
// keepalived's and HAProxy's own parsers, the Ignition engine, and a cluster of
// running keepalived daemons.
//
// Everything runs in network namespaces of its own and in a private view of the
// file system in which the rendered files lie at the paths that they have on a
// node. Nothing of it is seen by the host or sees the host's configuration.
//
// It needs root, the Debian packages that "make setup" installs and the tools
// that "make tools" builds. A test fails where one of those is missing; none is
// ever skipped.
package daemon
