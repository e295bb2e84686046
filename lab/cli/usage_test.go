package cli

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab"
)

// Usage errors are explained, as those of vipgen's own commands.
func TestUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"kil", `unknown command "kil" for "vipgen lab"; did you mean kill?`},
		{"statu -o json", "did you mean stall or status?"},
		{"help kil", "did you mean kill?"},
		{"", "missing: one of the commands"},
		{"up --nodes master=x", `--nodes "master=x": expected POOL=NUMBER, such as master=3,worker=1`},
		{"chaos --duration soon", `--duration "soon": expected a duration, such as 500ms, 10s or 5m`},
		{"chaos --announce bgp --profile fast", "--announce bgp has a built-in cluster"},
		{"chaos --announce ospf", "--announce ospf: expected vrrp or bgp"},
		{"chaos --announce bgp --faults arp-spoof", `the fault "arp-spoof"`},
		{"bench --scenario power-los", `no scenario "power-los": there are power-loss, `},
		{"bench --runs 0", "--runs 0: expected at least 1"},
		{"bench --clients 101", "--clients 101: expected 0 to 100"},
		{"bench --profile quick", "--profile quick: expected fast, virtual, classic, all-nodes, bgp, reference"},
		{"bench --interval 5ms", "--interval: advertisement interval 5ms: expected "},
		{"bench -o yaml", "--output \"yaml\": expected text, json or html"},
		{"bench one two", `unexpected argument "two"`},
		{"saturate --intervals 5ms", "--intervals: advertisement interval 5ms: expected "},
		{"stall --profile slow", "--profile slow: expected fast, virtual, "},
		{"stall --profile bgp", "--profile bgp: with VIPs by BGP there is no holder"},
		{"bench --profile bgp install-config.yaml", "--profile bgp has a built-in cluster"},
		{"stall --runs 0", "--runs 0: expected at least 1"},
		{"stall --lengths 0s", "--lengths 0s: expected positive durations"},
	} {
		code, stdout, stderr := run(strings.Fields(tt.args)...)
		if code != command.Input || stdout != "" || !strings.HasPrefix(stderr, "vipgen: ") || !strings.Contains(stderr, tt.want) || !strings.Contains(stderr, "See 'vipgen lab") {
			t.Errorf("vipgen lab %s: exit code %d, %q\n%s", tt.args, code, stdout, stderr)
		}
	}
}

// Every lab needs CoreDNS, and explains how to get it.
func TestLabsNeedCoreDNS(t *testing.T) {
	testkit.Fails(t, needCoreDNS(lab.Programs{Agent: "a"}), "name it with --coredns")
	testkit.Check(t, needCoreDNS(lab.Programs{Agent: "a", CoreDNS: "b"}))
}

func TestLabHints(t *testing.T) {
	for _, tt := range []struct {
		f    labFlags
		want string
	}{{labFlags{dir: "/var/lib/vipgen-lab"}, ""}, {labFlags{dir: "/tmp/labs", name: "a"}, " --dir /tmp/labs --name a"}} {
		testkit.Equal(t, tt.want, tt.f.where())
	}
}
