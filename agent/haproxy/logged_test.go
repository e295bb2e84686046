package haproxy

import (
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// HAProxy is polled at once when it has logged that a server changed.
func TestLogged(t *testing.T) {
	for line, want := range map[string]int{
		"Server api-servers/master-1 is DOWN, reason: Layer4 timeout, check duration: 150ms. 2 active and 0 backup servers left.\n":  1,
		"[WARNING]  (17) : Server api-servers/master-1 is UP, reason: Layer7 check passed, code: 200, check duration: 4ms.\n":        1,
		"Server listening/master-1 is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 0ms.\n": 1,
		"Proxy api-servers started.\n":              0,
		"[NOTICE]   (1) : New worker (17) forked\n": 0,
	} {
		j := &Job{changes: make(chan struct{}, 1)}
		j.logged([]byte(line))
		j.logged([]byte(line)) // not polled yet
		testkit.Equal(testkit.In(t, line), want, len(j.changes))
	}
}
