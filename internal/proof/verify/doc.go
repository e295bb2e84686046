// Package verify proves which node holds a VIP in every situation. It reads the keepalived.conf
// of each node of a cluster, enumerates every combination of working and failed parts and every
// order of two changes, simulates keepalived's election, and checks the conditions that must
// always hold. A failed check is shown by a counterexample.
//
// It shares no code with rendering: it takes keepalived's behaviour from the configuration's
// text, and states conditions in terms of what clients receive, not of priorities.
package verify
