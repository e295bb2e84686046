// Package importer converts the VIP configuration of a running cluster, from node files, a
// must-gather or exported objects, to input of vipgen: an install-config and a VIPConfig that
// render the same behaviour, with a list of what they cannot express.
//
// It touches no disk. It decodes only fields with a Go type, and shows only names, numbers and
// addresses of configurations, so no secret of the source can reach an output, a report or an
// error.
package importer
