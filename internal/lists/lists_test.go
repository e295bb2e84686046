package lists

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestSummarize(t *testing.T) {
	for n, want := range []string{"", "a", "a, b", "a, b and 1 more", "a, b and 2 more"} {
		testkit.Equal(t, want, Summarize([]string{"a", "b", "c", "d"}[:n], 2, ", "))
	}
}
