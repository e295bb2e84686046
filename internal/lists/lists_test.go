package lists

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMap(t *testing.T) {
	testkit.Equal(t, []string{"1", "2"}, Map([]int{1, 2}, strconv.Itoa))
	if got := Map([]int{}, strconv.Itoa); got != nil {
		t.Errorf("of an empty list: got %q, expected nil", got)
	}
}

func TestFlatMap(t *testing.T) {
	twice := func(n int) []int { return []int{n, n} }
	testkit.Equal(t, []int{1, 1, 2, 2}, FlatMap([]int{1, 2}, twice))
	testkit.Empty(t, FlatMap([]int{}, twice))
}

func TestFilter(t *testing.T) {
	list := []int{1, 2, 3, 4}
	even := func(n int) bool { return n%2 == 0 }
	testkit.Equal(t, []int{2, 4}, Filter(list, even))
	testkit.Equal(t, []int{1, 2, 3, 4}, list)
	testkit.Empty(t, Filter([]int{1}, even))
}

func TestAdd(t *testing.T) {
	testkit.Equal(t, []int{3, 1, 2}, Add([]int{3, 1}, 1, 2, 2, 3))
	testkit.Empty(t, Add([]int(nil)))
}

func TestJoin(t *testing.T) {
	list := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	if got, want := Join(list, " or "), "192.0.2.1 or 2001:db8::1"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}
