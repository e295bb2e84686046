// Package adopt plans how a cluster that OpenShift's own keepalived serves comes to run
// vipgen: what the operator lays on nodes is held against the operator contract
// (assets.Contract), roll-outs and their reboots are counted by ignition/diff, and the
// input comes from internal/day2/importer. It also says what an export of later, or another
// release, changes about that.
//
// It touches no disk. Of an export it shows names, and of files that the contract knows
// their contents; of pull secrets it decodes the names of registries alone.
package adopt
