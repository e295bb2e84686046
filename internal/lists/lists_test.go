package lists

import (
	"net/netip"
	"slices"
	"strconv"
	"testing"
)

func TestMap(t *testing.T) {
	if got := Map([]int{1, 2}, strconv.Itoa); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %q", got)
	}
	if got := Map([]int{}, strconv.Itoa); got != nil {
		t.Errorf("of an empty list: got %q, expected nil", got)
	}
}

func TestJoin(t *testing.T) {
	list := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	if got, want := Join(list, " or "), "192.0.2.1 or 2001:db8::1"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}
