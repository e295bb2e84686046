// Package control runs a lab until it is ended, and lets other processes of root inspect and break
// it through a socket in the lab's directory. The directory also holds a record of everything to
// remove if the process fails.
package control
