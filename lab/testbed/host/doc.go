// Package host makes a network namespace into a machine: it adds a file system
// (a directory), a host name, and PID and mount namespaces, so that everything
// that runs there ends at once, with its mounts, when the power goes.
//
// It needs root and Debian's util-linux. The processes of a host end with the
// process that made it, in whatever way that ends.
package host
