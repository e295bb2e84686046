package cli

import (
	"strings"
	"testing"
)

// A plan needs only one file.
func TestExternalLBOfAFile(t *testing.T) {
	good(t)
	nodes := strings.Fields("install-config.yaml " + threeNodes + " --node d:worker=192.0.2.13")
	if got, want := must(t, append([]string{"external-lb"}, nodes...)...), must(t, append([]string{"external-lb", "plan"}, nodes...)...); got != want {
		t.Errorf("got\n%s", got)
	}
}
