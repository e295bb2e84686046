// Package netns builds small layer-2 networks from Linux network namespaces: a bridge in its
// own namespace and any number of nodes, each a namespace with its links attached to that
// bridge. They are isolated from the host's own network.
//
// It needs root and Debian's iproute2. Every namespace is named after the process and a counter
// ("vg" + pid + "-" + counter), and a [Network] changes only the namespaces that it made
// itself.
package netns
