// Package reference is what on-premises OpenShift clusters run today in place of
// vipgen's files: keepalived with check scripts, HAProxy, and a monitor beside
// each. It is the baseline that vipgen is measured against, on the same hosts and
// by the same lab.
//
// It is written anew, to behave as today's does; figures.go has its figures with
// their sources, docs/testing.md lists where it differs. Where releases differ, it has
// what is better for it, and nowhere is it slower than what it stands for. VRRP
// settings, priorities and peers are from seeds 001 and 004, HAProxy's check and
// timeouts from seed 002.
package reference
