package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
)

func TestLabBenchUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"bench --scenario power-los", `no scenario "power-los": there are power-loss, `},
		{"bench --runs 0", "--runs 0: expected at least 1"},
		{"bench --clients 101", "--clients 101: expected 0 to 100"},
		{"bench --profile quick", "--profile quick: expected fast, virtual, classic, all-nodes, reference"},
		{"bench --interval 5ms", "--interval: advertisement interval 5ms: expected "},
		{"bench -o yaml", "--output \"yaml\": expected text, json or html"},
		{"bench one two", `unexpected argument "two"`},
		{"saturate --intervals 5ms", "--intervals: advertisement interval 5ms: expected "},
		{"stall --lengths 0s", "--lengths 0s: expected positive durations"},
		{"stall --profile slow", "--profile slow: expected fast, virtual, "},
		{"stall --runs 0", "--runs 0: expected at least 1"},
	} {
		code, stdout, stderr := run(strings.Fields(tt.args)...)
		if code != command.Input || stdout != "" || !strings.HasPrefix(stderr, "vipgen: "+tt.want) {
			t.Errorf("lab %s: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}

// Every lab needs CoreDNS, and explains how to get it.
func TestLabsNeedCoreDNS(t *testing.T) {
	testkit.Fails(t, needCoreDNS(lab.Programs{Agent: "a"}), "name it with --coredns")
	testkit.Check(t, needCoreDNS(lab.Programs{Agent: "a", CoreDNS: "b"}))
}
