package render

import (
	"slices"

	"github.com/vipgen/vipgen/ignition"
)

// atLeast says whether a version, as "4.17", is that one or a later one; one that
// is not known, or none, is not.
func atLeast(v, least string) bool {
	known := ignition.SupportedOpenShift()
	i := slices.Index(known, v)
	return i >= 0 && i >= slices.Index(known, least)
}
