// Package daemon runs the real programs on vipgen's output in tests: keepalived's and HAProxy's
// own parsers, the Ignition engine, and a cluster of running keepalived daemons.
//
// Everything runs in separate network namespaces and in a private view of the file system, in
// which the rendered files have the paths that they have on a node. Host and tests do not see
// each other's configuration.
//
// It needs root, the Debian packages that "make setup" installs and the tools that "make tools"
// builds. A test fails if one of them is missing; none is ever skipped.
package daemon
