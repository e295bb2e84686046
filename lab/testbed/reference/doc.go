// Package reference renders what on-premises OpenShift clusters run today in place of vipgen's
// files: keepalived with check scripts, HAProxy, and a monitor for each. It is the baseline that
// vipgen is compared with, on the same hosts in the same lab.
//
// It is an independent implementation with the same behaviour; openshift_figures.go has the figures with
// their sources, and docs/testing.md lists the differences. Where releases differ, it has the
// better behaviour, and it is never slower than the original. VRRP settings, priorities and peers
// are from seeds 001 and 004, HAProxy's check and timeouts from seed 002.
package reference
