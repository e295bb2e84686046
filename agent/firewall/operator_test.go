package firewall

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// operatorsRules are the redirect of OpenShift's own haproxy-monitor since 4.22.
//
//go:embed testdata/haproxy-monitor.nft
var operatorsRules string

// iptables runs the program that the operator's monitor uses before 4.22.
func (l *lab) iptables(program string, args ...string) {
	l.t.Helper()
	testkit.Run(l.t, l.node.Command(context.Background(), testkit.Program(l.t, program), args...))
}

// OpenShift's own redirect is still present on a node that was adopted without a reboot. It is
// kept until vipgen's is in place, since clients need one of them, and then removed: while
// HAProxy does not serve, connections reach the node's API server instead of a closed port.
func TestHardCase58OperatorsRedirect(t *testing.T) {
	for name, tt := range map[string]struct {
		load func(*lab)
		want []string
	}{
		"nftables": {func(l *lab) { l.load(operatorsRules) }, []string{"table ip ocp_nat", "table ip6 ocp_nat"}},
		"iptables": {func(l *lab) {
			to := []string{"-t", "nat", "-p", "tcp", "--dport", "6443", "-m", "comment", "--comment", "OCP_API_LB_REDIRECT"}
			rule := func(program, chain, vip string, target ...string) {
				l.iptables(program, append(append(to, "-I", chain, "--dst", vip), target...)...)
			}
			rule("iptables", "PREROUTING", "192.0.2.10", "-j", "DNAT", "--to-destination", "192.0.2.10:9445")
			rule("iptables", "OUTPUT", "192.0.2.10", "-o", "lo", "-j", "REDIRECT", "--to-ports", "9445")
			rule("ip6tables", "PREROUTING", "2001:db8::10", "-j", "DNAT", "--to-destination", "[2001:db8::10]:9445")
		}, []string{"a rule of iptables in ip nat OUTPUT", "a rule of iptables in ip nat PREROUTING", "a rule of iptables in ip6 nat PREROUTING"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			// Rules of others, also in the same chains.
			l.iptables("iptables", "-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "22623", "-m", "comment", "--comment", "of somebody else", "-j", "ACCEPT")
			l.load("table ip other { chain c { type nat hook output priority -50; }\n}")
			tt.load(l)
			with := l.nft("-s", "list", "ruleset")
			k := l.keep()
			k.redirect(api)
			k.serving(false)
			testkit.Await(t, "the state to name it", func() bool { return k.state().Leftover == strings.Join(tt.want, ", ") }, func() string { return k.state().Leftover })
			testkit.Contains(t, l.nft("-s", "list", "ruleset"), with)
			l.reaches(l.client, vips[0], 6443, "9445")

			k.serving(true)
			testkit.Await(t, "it to be gone", func() bool { return k.state().InPlace && k.state().Leftover == "" })
			l.reaches(l.client, vips[0], 6443, "9445")
			l.reaches(l.client, vips[2], 6443, "9445")
			k.serving(false)
			testkit.Await(t, "the end of vipgen's", func() bool { return !k.state().InPlace })
			l.reaches(l.client, vips[0], 6443, "6443")
			l.reaches(l.client, vips[2], 6443, "6443")
			k.end()
			after := l.nft("-s", "list", "ruleset") // iptables' chains stay, empty
			for part, want := range map[string]bool{"tcp dport 22623": true, "hook output priority -50": true, "9445": false, operatorsTable: false} {
				testkit.Equal(testkit.In(t, part, after), want, strings.Contains(after, part))
			}
		})
	}
}
