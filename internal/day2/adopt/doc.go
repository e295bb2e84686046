// Package adopt plans the migration of a cluster from OpenShift's own keepalived to vipgen: it
// compares the operator's files with the operator contract (assets.Contract), counts roll-outs
// and their reboots by ignition/diff, and takes the input from internal/day2/importer. It also
// reports what a later export, or another release, changes.
//
// It touches no disk. It shows names of an export, and contents of files in the contract only;
// from pull secrets it decodes the names of registries alone.
package adopt
