// Package bench measures what clients of a cluster's VIPs see when something goes
// wrong. Each [Scenario] happens a number of times to the same cluster set up in
// several ways, each a [Profile]: vipgen's own, and what on-premises clusters run
// today. Nothing is waited for by a fixed time: a run begins when everything is
// healthy, and ends when it is over for the client.
package bench
