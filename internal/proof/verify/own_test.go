package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

func ownRequests(t *testing.T, c *render.Cluster) (out []string, holds bool) {
	t.Helper()
	setups, err := verify.Setups(c, verify.Options{})
	testkit.Must(t, err)
	r := verify.Report{OwnRequests: verify.Requests(c, setups)}
	for _, o := range r.OwnRequests {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %t %s", o.Role, o.Local, o.Problem)))
	}
	return out, r.Holds()
}

// apiServer.local determines which pools' own requests depend on the VIP.
func TestOwnRequests(t *testing.T) {
	for local, want := range map[string][]string{
		"ControlPlane": {"master true", "worker false"},
		"AllNodes":     {"master true", "worker true"},
		"None":         {"master false", "worker false"},
	} {
		vip := fmt.Sprintf("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {apiServer: {local: %s}}\n", local)
		for _, platform := range []string{bareMetal, openStack, onlyIPv6} {
			got, holds := ownRequests(t, clusterOf(t, platform, 3, vip))
			if !slices.Equal(got, want) || !holds {
				t.Errorf("%s: %q, holds %t; want %q", local, got, holds, want)
			}
		}
	}
}

// A control-plane node that HAProxy cannot reach in the VIP's family, and a backend that is
// the VIP itself, are found.
func TestOwnRequestsThatDepend(t *testing.T) {
	c := clusterOf(t, openStack, 3, "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {apiServer: {local: AllNodes}}\n")
	setups, err := verify.Setups(c, verify.Options{})
	testkit.Must(t, err)
	i := slices.IndexFunc(setups, func(s verify.Setup) bool { return s.Group.Role == v1alpha1.GroupAPI && s.Stage == verify.StageRunning })
	peer := &setups[i].Nodes[0].Facts.Peers[1]
	usual := peer.Addresses
	check := func(problem string) {
		t.Helper()
		for _, o := range verify.Requests(c, setups) {
			testkit.Contains(testkit.In(t, o.Role), o.Problem, problem)
		}
	}
	peer.Addresses = usual[1:]
	check("has no backend for " + peer.Name)
	peer.Addresses = setups[i].Group.VIPs
	check("backend " + peer.Name + " of HAProxy on ")
}
