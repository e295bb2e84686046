// Package image builds container images from files, without a container engine and without a
// registry: vipgen's own, and those of the daemons that its pods run, for tests; and the
// archives of a release, from the same parts.
//
// The same source, Go version and Debian packages give the same bytes: entries are sorted,
// belong to root, have fixed modes and one time, which is SOURCE_DATE_EPOCH or 1970.
package image
