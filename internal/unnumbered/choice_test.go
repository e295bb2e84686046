package unnumbered

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestChoice: steps are SECOND:received ROUTER, or SECOND:choose with a session (up) or without (down).
func TestChoice(t *testing.T) {
	for name, tt := range map[string]struct{ steps, want string }{
		"none":                             {"0:down", "-"},
		"the first at once":                {"0:down 1:1 1:down 2:up", "- 1 1"},
		"a hostile one beside the session": {"0:1 0:down 1:up 2:2 3:up 30:2 30:up", "1 1 1 1"},
		"a session lost for a moment":      {"0:1 0:down 9:up 9:2 10:down 13:down 14:up", "1 1 1 1 1"},
		"the router has another address":   {"0:1 0:down 9:up 10:down 11:2 13:down 14:down 15:up 60:up", "1 1 1 1 2 2 2"},
		"each in turn, new ones first":     {"0:1 0:down 1:2 4:down 5:down 6:3 10:down 15:down 20:down", "1 1 2 3 1 2"},
		"the only one stays":               {"0:1 0:down 9:up 99:down 999:down", "1 1 1 1"},
	} {
		var c choice
		var got []string
		begin := time.Unix(0, 0).Add(time.Hour)
		for step := range strings.FieldsSeq(tt.steps) {
			second, what, _ := strings.Cut(step, ":")
			after, err := time.ParseDuration(second + "s")
			testkit.Must(t, err)
			if what != "up" && what != "down" {
				c.record(netip.MustParseAddr("fe80::"+what), begin.Add(after))
				continue
			}
			_, now := c.choose(begin.Add(after), what == "up")
			text := "-"
			if now.IsValid() {
				text = strings.TrimPrefix(now.String(), "fe80::")
			}
			got = append(got, text)
		}
		testkit.Equal(testkit.In(t, name), tt.want, strings.Join(got, " "))
	}
}

// TestMany: a host that invents routers neither takes memory nor the place of the chosen one.
func TestMany(t *testing.T) {
	var c choice
	now := time.Unix(0, 0).Add(time.Hour)
	right := netip.MustParseAddr("fe80::1")
	c.record(right, now)
	c.choose(now, false)
	for i := range 1000 {
		c.record(netip.MustParseAddr(fmt.Sprintf("fe80::2:%x", i)), now)
		_, chosen := c.choose(now, true)
		testkit.Equal(t, right, chosen)
	}
	testkit.Equal(t, most, len(c.known))
}
