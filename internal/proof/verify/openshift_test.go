package verify_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// besideOpenShift is two control-plane nodes and an arbiter, with OpenShift's own
// keepalived on the bootstrap host.
func besideOpenShift(t *testing.T, vips, vip string) *render.Cluster {
	t.Helper()
	install := fmt.Sprintf(`apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
networking:
  machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: "2001:db8::/64"}]
arbiter: {name: arbiter, replicas: 1}
controlPlane: {name: master, replicas: 2}
compute: [{name: worker, replicas: 0}]
platform:
  baremetal: %s
`, vips)
	return clusters.Load(t, install, vip)
}

const (
	managed     = `{apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3]}`
	managedBoth = `{apiVIPs: [192.0.2.2, "2001:db8::2"], ingressVIPs: [192.0.2.3, "2001:db8::3"]}`
)

// withArbiter adds the arbiter to a setup: in its current role or, with asMember, as the group
// member that it used to be.
func withArbiter(t *testing.T, c *render.Cluster, s *verify.Setup, asMember bool) {
	t.Helper()
	n := &v1alpha1.Node{Name: "arbiter-0", Role: v1alpha1.RoleArbiter, VRRP: &s.VRRP, Interfaces: []v1alpha1.Interface{{
		Name: s.Nodes[0].Facts.Interfaces[0].Name, DefaultRoute4: true, DefaultRoute6: true,
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.99/24"), netip.MustParsePrefix("2001:db8::99/64")},
	}}}
	for _, m := range s.Nodes {
		n.Peers = append(n.Peers, v1alpha1.Peer{Name: m.Facts.Name, Role: m.Facts.Role, Addresses: addressesOf(m.Facts)})
	}
	rendered := *n
	if asMember {
		rendered.Role = v1alpha1.RoleMaster
	}
	conf, err := keepalived.Render(keepalived.Template, c.Config, &rendered)
	testkit.Must(t, err)
	if !asMember && !strings.Contains(string(conf), "# Left out: api: OpenShift's own keepalived does not know arbiters.") {
		t.Errorf("the arbiter's keepalived.conf lacks the reason why it is empty:\n%s", conf)
	}
	s.Nodes = append(s.Nodes, verify.Node{Facts: n, Conf: conf})
}

func addressesOf(n *v1alpha1.Node) (out []netip.Addr) {
	for _, p := range n.Interfaces[0].Addresses {
		out = append(out, p.Addr())
	}
	return out
}

// Hard case 32: OpenShift's bootstrap sends to the control-plane nodes alone, so an arbiter in
// the group would hold the VIP as well.
func TestHardCase32Arbiter(t *testing.T) {
	for name, vip := range map[string]string{"until the migration": "", "for good": oldTimes} {
		for _, vips := range []string{managed, managedBoth} {
			t.Run(name, func(t *testing.T) {
				c := besideOpenShift(t, vips, vip)
				for _, stage := range []string{"installation", "running"} {
					if stage == "running" && vip == "" {
						continue // nothing of OpenShift's runs
					}
					s := setupOf(t, c, "api", stage)
					if roles := rolesOf(&s); slices.Contains(roles, v1alpha1.RoleArbiter) || stage == "installation" && roles[0] != v1alpha1.RoleBootstrap {
						t.Fatalf("%s: %q", stage, roles)
					}
					withArbiter(t, c, &s, false)
					for _, p := range prove(t, &s) {
						if p.Counterexample != nil {
							t.Errorf("%s: %+v", stage, p.Counterexample)
						}
					}
				}
				s := setupOf(t, c, "api", "installation")
				withArbiter(t, c, &s, true)
				for _, p := range prove(t, &s) {
					x := p.Counterexample
					if x == nil {
						t.Fatal("the arbiter seems to receive from the bootstrap")
					}
					if x.Check != verify.OneHolder || !slices.Equal(x.Holders, []string{"bootstrap", "arbiter-0"}) || !strings.Contains(x.Why, "is not a peer of bootstrap") {
						t.Errorf("%+v", x)
					}
				}
			})
		}
	}
}

func rolesOf(s *verify.Setup) (out []string) {
	for _, n := range s.Nodes {
		out = append(out, n.Facts.Role)
	}
	return out
}

func prove(t *testing.T, s *verify.Setup) []verify.Proof {
	t.Helper()
	out, err := s.Prove(nil)
	if err != nil || len(out) == 0 {
		t.Fatal(out, err)
	}
	return out
}

// OpenShift's bootstrap takes the VIP back from a node that was first: it has had no nopreempt
// since 4.8 (machine-config-operator, pull request 2586).
func TestOpenShiftsBootstrapPreempts(t *testing.T) {
	s := setupOf(t, besideOpenShift(t, managed, ""), "api", "installation")
	edit(t, &s, 0, "state BACKUP", "state BACKUP\n    nopreempt")
	x := prove(t, &s)[0].Counterexample
	if x == nil || x.Check != verify.BootstrapKeeps {
		t.Errorf("with nopreempt: %+v", x)
	}
}

// The rendezvous host has the addresses of both families in agent-config.yaml; where that has
// only one, another is made up.
func TestRendezvousHost(t *testing.T) {
	for name, tt := range map[string]struct {
		six  string
		want []netip.Addr
	}{
		"both families": {`, ipv6: {enabled: true, address: [{ip: "2001:db8::20", prefix-length: 64}]}`, []netip.Addr{netip.MustParseAddr("192.0.2.20"), netip.MustParseAddr("2001:db8::20")}},
		"one family":    {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			install := strings.Replace(`apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
networking: {machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: "2001:db8::/64"}]}
controlPlane: {name: master, replicas: 3}
compute: [{name: worker, replicas: 0}]
platform: {baremetal: VIPS}
`, "VIPS", managedBoth, 1)
			agent := `apiVersion: v1beta1
kind: AgentConfig
metadata: {name: demo}
rendezvousIP: 192.0.2.20
hosts:
- hostname: master-0
  role: master
  interfaces: [{name: eno1, macAddress: "52:54:00:00:00:20"}]
  networkConfig:
    interfaces: [{name: eno1, type: ethernet, state: up, ipv4: {enabled: true, address: [{ip: 192.0.2.20, prefix-length: 24}]}` + tt.six + "}]\n"
			c, _, err := render.Load(render.Sources{
				InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(install)},
				AgentConfig:   &render.File{Name: "agent-config.yaml", Data: []byte(agent)},
			}, render.Options{})
			testkit.Must(t, err)
			s := setupOf(t, c, "api", "installation")
			b := s.Nodes[0]
			if b.Facts.Role != v1alpha1.RoleBootstrap || len(addressesOf(b.Facts)) != 2 || b.Invented != (tt.want == nil) {
				t.Fatalf("%+v", b)
			}
			if tt.want != nil && !slices.Equal(addressesOf(b.Facts), tt.want) {
				t.Errorf("%v", addressesOf(b.Facts))
			}
			for _, p := range prove(t, &s) {
				if p.Counterexample != nil || p.Nodes[0] != "bootstrap" || slices.Contains(p.Nodes, "master-0") {
					t.Errorf("%v: %q, %+v", p.VIPs, p.Nodes, p.Counterexample)
				}
			}
		})
	}
}
