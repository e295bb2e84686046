// Package importer reads how a running cluster carries its VIPs today, from node
// files, a must-gather or exported objects, and states it as input of vipgen: an
// install-config and a VIPConfig that render the same behaviour, with a list of
// what they cannot say.
//
// It touches no disk. Of the objects it decodes the fields that it has Go types
// for, and of configurations it shows names, numbers and addresses alone, so no
// secret of the source can reach an output, a report or an error.
package importer
