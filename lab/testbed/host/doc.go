// Package host makes a machine of a network namespace: it adds a file system (a directory), a host
// name, and PID and mount namespaces, so that everything on it ends at once, with its mounts, when
// it is powered off.
//
// It needs root and Debian's util-linux. The processes of a host end with the process that made it,
// even if that is killed.
package host
