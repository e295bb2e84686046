package keepalived

import (
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Hard case 2: a node that takes part keeps its last peers when the list has no other control-plane node.
func TestHardCase02KeepLastPeers(t *testing.T) {
	peers := func(list ...string) []v1alpha1.Peer {
		return lists.Map(list, func(name string) v1alpha1.Peer {
			return v1alpha1.Peer{Name: name[:2], Role: name[3:]}
		})
	}
	for _, tt := range []struct {
		name, role       string
		now, last, peers []v1alpha1.Peer
	}{
		{"one is left", "master", peers("m1 master"), peers("m1 master", "m2 master"), peers("m1 master")},
		{"all were deleted", "master", peers("w0 worker"), peers("m1 master", "m2 master", "w1 worker"), peers("w0 worker", "m1 master", "m2 master")},
		{"the last one lost its role", "master", peers("m1 ", "w0 worker"), peers("m1 master"), peers("w0 worker", "m1 master")},
		{"only itself", "master", peers("m0 master"), peers("m1 master"), peers("m0 master", "m1 master")},
		{"a bootstrap does not come back", "master", nil, peers("b0 bootstrap"), nil},
		{"a worker", "worker", nil, peers("m1 master"), nil},
	} {
		n := &v1alpha1.Node{Name: "m0", Role: tt.role, Peers: tt.now}
		keepLastPeers(n, tt.last)
		testkit.Equal(testkit.In(t, tt.name), tt.peers, n.Peers)
	}
}
