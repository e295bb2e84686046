package bgp

import (
	"fmt"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Names order nodes that can have the VIP: no worker, and no bootstrap host, precedes one.
func TestPlace(t *testing.T) {
	var peers []v1alpha1.Peer
	for i := range 12 {
		peers = append(peers, v1alpha1.Peer{Name: fmt.Sprintf("m%02d", i), Role: v1alpha1.RoleMaster})
	}
	peers = append(peers, v1alpha1.Peer{Name: "a", Role: v1alpha1.RoleWorker}, v1alpha1.Peer{Name: "b", Role: v1alpha1.RoleBootstrap})
	for _, tt := range []struct {
		name, role string
		want       int
	}{{"m00", v1alpha1.RoleMaster, 0}, {"m03", v1alpha1.RoleMaster, 3}, {"m11", v1alpha1.RoleMaster, 9}, {"z", v1alpha1.RoleBootstrap, 0}} {
		node := &v1alpha1.Node{Name: tt.name, Role: tt.role, Peers: peers}
		testkit.Equal(testkit.In(t, tt.name), tt.want, place(&v1alpha1.ClusterConfigSpec{}, &v1alpha1.Group{Role: v1alpha1.GroupAPI}, node))
	}
}
