// Package control runs a lab for as long as somebody wants it, and lets other
// processes of root look at it and break it: through a socket in the lab's
// directory, which also records what has to be removed when all else fails.
package control
