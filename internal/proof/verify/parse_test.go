package verify_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/proof/verify"
)

var sameAddresses = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// FuzzParse: any text is refused or parsed without a panic, and a parsed configuration is
// evaluated or refused.
func FuzzParse(f *testing.F) {
	c := clusterOf(f, openStack, 3, "")
	s := setupOf(f, c, "api", "running")
	for _, n := range s.Nodes {
		f.Add(n.Conf)
	}
	in := setupOf(f, c, "ingress", "running")
	f.Add(in.Nodes[0].Conf)
	f.Fuzz(func(t *testing.T, text []byte) {
		two := s
		two.Nodes = []verify.Node{s.Nodes[0], s.Nodes[1]}
		two.Nodes[1].Conf = text
		proofs, err := two.Prove(nil)
		if err != nil {
			return
		}
		for _, p := range proofs {
			if len(p.Nodes) > len(two.Nodes) {
				t.Errorf("%d nodes in a proof", len(p.Nodes))
			}
		}
	})
}
