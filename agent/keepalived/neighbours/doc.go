// Package neighbours keeps the hosts on a node's links informed about its VIPs: it announces
// VIPs that came, watches and answers claims of other hosts, makes peers known to each other,
// and limits what waits for dead ones.
package neighbours
