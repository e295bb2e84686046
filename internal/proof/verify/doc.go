// Package verify proves who holds a VIP when. It reads the keepalived.conf that
// each node of a cluster runs, enumerates every combination of parts that work
// and parts that failed and every order of two changes, lets the nodes elect as
// keepalived does, and checks what is to hold always. What does not hold is shown
// by a counterexample.
//
// It has no part in making the configuration: what keepalived does with it is
// read from its text, and what is to hold is stated in terms of what clients get,
// not of priorities.
package verify
