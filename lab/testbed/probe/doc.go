// Package probe measures the answers that a client of a VIP gets: [Probe] requests a URL every few
// milliseconds, each time over a new connection, and [Held] keeps many connections open and sends
// requests over them from time to time.
package probe
