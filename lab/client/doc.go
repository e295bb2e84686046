// Package client runs the clients of a cluster's API, as client-go implements them: watches that
// only receive, leader elections, and heartbeats like kubelet's. They reach the API at a VIP from
// the control plane, from workers and from outside. [Start] starts them, and End returns their
// longest delays during a failure.
package client
