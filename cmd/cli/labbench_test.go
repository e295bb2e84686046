package cli

import (
	"strings"
	"testing"
)

func TestLabBenchUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"bench --scenario power-los", `no scenario "power-los": there are power-loss, `},
		{"bench --runs 0", "--runs 0: expected 1 at least"},
		{"bench --profile quick", "--profile quick: expected fast, virtual, classic, reference"},
		{"bench --interval 5ms", "--interval: an advert every 5ms: expected "},
		{"bench -o yaml", "-o yaml: expected text or json"},
		{"bench one two", "accepts at most 1 arg(s), received 2"},
		{"saturate --intervals 5ms", "--intervals: an advert every 5ms: expected "},
		{"stall --lengths 0s", "--lengths 0s: expected more than nothing"},
		{"stall --profile slow", "--profile slow: expected fast, virtual, "},
		{"stall --runs 0", "--runs 0: expected 1 at least"},
	} {
		code, stdout, stderr := run("", append([]string{"lab"}, strings.Fields(tt.args)...)...)
		if code != exitInput || stdout != "" || !strings.HasPrefix(stderr, "vipgen: "+tt.want) {
			t.Errorf("lab %s: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}
