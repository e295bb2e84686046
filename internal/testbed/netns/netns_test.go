package netns

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Remove touches no namespace of others, and does without those that are gone. The lab's tests
// of `lab down` cover the rest.
func TestRemove(t *testing.T) {
	for _, name := range []string{"vg1-1-hub", "vg77-1-x", "vg7-1-hub/../../x", "-all", ""} {
		testkit.Fails(testkit.In(t, name), Remove(7, "vg7-1-hub", name), "is not a namespace that process 7 made")
	}
	testkit.Check(t, Remove(7, "vg7-1-hub", "vg7-1-n-gone"))
}
