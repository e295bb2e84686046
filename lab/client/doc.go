// Package client is the clients that clusters have, as client-go makes them: watches
// that only listen, leader elections, and heartbeats as kubelet's. They reach the API at
// a VIP from the control plane, from workers and from outside. [Start] starts them;
// what they waited for in vain while something failed is what End returns.
package client
