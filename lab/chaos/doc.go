// Package chaos breaks a lab's cluster at random, with several faults at once, and checks that its
// rules always hold.
//
// All faults are planned from a seed ([newSchedule]), so that a seed reproduces a run. The effects
// of the faults on each node are recorded as they happen ([history]), and [judgeHistory] returns
// the violations in that record and in the holders of the VIPs.
package chaos
