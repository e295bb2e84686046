package lists

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestSummarize(t *testing.T) {
	for _, tt := range []struct {
		list []string
		want string
	}{
		{nil, ""},
		{[]string{"a"}, "a"},
		{[]string{"a", "b"}, "a, b"},
		{[]string{"a", "b", "c"}, "a, b and 1 more"},
		{[]string{"a", "b", "c", "d"}, "a, b and 2 more"},
	} {
		testkit.Equal(t, tt.want, Summarize(tt.list, 2, ", "))
	}
}
