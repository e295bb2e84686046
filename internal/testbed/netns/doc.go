// Package netns makes small layer-2 networks out of Linux network namespaces:
// a bridge in a namespace of its own and any number of nodes, each a namespace
// with its links attached to that bridge. Nothing of it is visible in, or
// reaches, the host's own network.
//
// It needs root and Debian's iproute2. Every namespace is named after the
// process and a counter ("vg" + pid + "-" + counter), and a [Network] only ever
// touches the namespaces that it made itself.
package netns
