// Package chaos breaks a lab's cluster at random, several things at once, and
// watches that what has to hold always holds.
//
// What happens is decided in advance from a seed ([newSchedule]), so that a seed
// tells all of it. What the faults mean to each node is noted as they happen
// ([history]), and [judgeHistory] says of that, and of who held the VIPs when, what
// should not have been.
package chaos
