package netdump

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestList(t *testing.T) {
	other := errors.New("no such device")
	for name, tt := range map[string]struct {
		errs  []error
		calls int
		want  error
	}{
		"at once":     {[]error{nil}, 1, nil},
		"interrupted": {[]error{fmt.Errorf("links: %w", netlink.ErrDumpInterrupted), netlink.ErrDumpInterrupted, nil}, 3, nil},
		"fails":       {[]error{netlink.ErrDumpInterrupted, other, nil}, 2, other},
		"for ever":    {slices.Repeat([]error{netlink.ErrDumpInterrupted}, attempts+1), attempts, netlink.ErrDumpInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			got, err := List(func() ([]int, error) { calls++; return []int{calls}, tt.errs[calls-1] })
			if calls != tt.calls || !errors.Is(err, tt.want) || !slices.Equal(got, []int{calls}) {
				t.Errorf("%v, %v after %d calls", got, err, calls)
			}
		})
	}
}
