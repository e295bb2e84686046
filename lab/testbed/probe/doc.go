// Package probe is a client of a VIP that measures what it gets: [Probe] asks for
// a URL every few milliseconds, each time over a new connection, and [Held] keeps
// many connections open and asks over them from time to time.
package probe
