package lab

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/guard"
	"github.com/vipgen/vipgen/internal/companion/network"
)

// besides lists the ports of nodes for other purposes than vipgen's: etcd, and the health of
// routers, which their own node checks.
var besides = []string{"tcp/2379", "tcp/2380", "tcp/1936"}

// Every listener of a node is on loopback or among the ports that `vipgen ports` opens, and its
// guard accepts exactly the senders of VRRP that `vipgen ports` lists.
func testPorts(t *testing.T, c *cluster) {
	for _, n := range c.nodes {
		rules := network.Rules(c.cluster, n.Role)
		seen := map[string]bool{}
		for line := range strings.Lines(n.output("ss", "-Hlntu")) {
			w := strings.Fields(line)
			if len(w) < 5 {
				t.Fatalf("ss on %s: %q", n.Name, line)
			}
			at := w[4][:strings.LastIndexByte(w[4], ':')]
			at, _, _ = strings.Cut(strings.Trim(at, "[]"), "%")
			if a, err := netip.ParseAddr(at); err == nil && a.IsLoopback() {
				continue
			}
			what := w[0] + "/" + w[4][strings.LastIndexByte(w[4], ':')+1:]
			seen[what] = true
			open := func(r network.Rule) bool { return fmt.Sprintf("%s/%d", r.Protocol, r.Port) == what }
			if !slices.ContainsFunc(rules, open) && !slices.Contains(besides, what) {
				t.Errorf("%s listens at %s, which no rule opens", n.Name, line)
			}
		}
		for _, r := range rules {
			if what := fmt.Sprintf("%s/%d", r.Protocol, r.Port); r.Port != 0 && !seen[what] {
				t.Errorf("%s does not listen at %s, which is opened for %s", n.Name, what, r.For)
			}
		}
		var networks []netip.Prefix
		for _, r := range rules {
			if r.Protocol == network.VRRP {
				networks = append(networks, r.Networks...)
			}
		}
		sent := 0
		for _, set := range elements.FindAllStringSubmatch(n.output("nft", "list", "table", "inet", guard.TableName), -1) {
			for _, word := range strings.Split(set[1], ",") {
				a := netip.MustParseAddr(strings.TrimSpace(word))
				if sent++; !slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) }) {
					t.Errorf("the guard of %s lets %v send, which is in none of %v", n.Name, a, networks)
				}
			}
		}
		if sent == 0 && n.Role == "master" { // the one worker has no peers
			t.Errorf("the guard of %s accepts no sender", n.Name)
		}
		show(t, n.Name+"$ ss -lntu, without loopback", fmt.Sprint(len(seen), " ports, all of them opened by vipgen ports --role ", n.Role))
	}
}

// elements matches the elements of a set, as nft lists them.
var elements = regexp.MustCompile(`elements = \{([^}]*)\}`)

// output returns the output of a command on the node.
func (n *node) output(name string, args ...string) string {
	n.cluster.t.Helper()
	out, err := n.Command(n.cluster.t.Context(), name, args...).CombinedOutput()
	if err != nil {
		n.cluster.t.Fatalf("%s on %s: %v\n%s", name, n.Name, err, out)
	}
	return string(out)
}
