package haproxy

import (
	"fmt"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// A message that HAProxy prints in two forms is logged once, and a repeated one again.
func TestTwice(t *testing.T) {
	const down = "Server api-servers/master-1 is DOWN, reason: Layer4 timeout, check duration: 150ms. 0 active and 0 backup servers left.\n"
	j := &Job{changes: make(chan struct{}, 1)}
	for i, tt := range []struct {
		line string
		want bool
	}{
		{"[WARNING]  (17) : " + down, true},
		{down, false},
		{"[ALERT]    (17) : backend 'api-servers' has no server available!\n", true},
		{"backend api-servers has no server available!\n", false},
		{down, true},
		{down, true},
		{"[WARNING]  (17) : " + down, false},
		{"[NOTICE]   (1) : New worker (17) forked\n", true},
		{"Proxy api-servers started.\n", true},
		{"Proxy api-servers started.\n", true},
	} {
		testkit.Equal(testkit.In(t, i, tt.line), tt.want, j.logged([]byte(tt.line)))
	}
	for i := range 10 * mostPrinted {
		j.logged(fmt.Appendf(nil, "[WARNING]  (17) : line %d\n", i))
	}
	if len(j.printed) != mostPrinted {
		t.Errorf("%d lines are kept, %d at most", len(j.printed), mostPrinted)
	}
}
