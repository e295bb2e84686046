package lab

import (
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// The networks are those that vSphere's wizard writes, whatever the real ones are.
//
//go:embed testdata/wizard-networks.yaml
var wizardNetworks string

// outside returns a cluster whose VIPs are outside of its machine networks, and machines for
// it, in networks that are in no file: half of the nodes are not even in the most likely
// network of the VIPs. Each also has an address in the machine network, like one of a storage
// network.
func outside(t *testing.T) (*render.Cluster, *Plan) {
	t.Helper()
	r, problems, err := render.Load(render.Sources{
		InstallConfig: render.File{Name: "install-config.yaml", Data: []byte(wizardNetworks)},
		VIPConfig:     &render.File{Name: "vipgen.yaml", Data: []byte(vipgenYAML)},
	}, render.Options{})
	if err != nil || len(problems) != 1 || problems[0].Code != problem.VIPOutsideNetwork || problems[0].Severity != problem.Warning {
		t.Fatal(problems, err)
	}
	plan, err := NewPlan(r, PlanOptions{})
	testkit.Must(t, err)
	machines := []*Machine{&plan.Client, &plan.Site}
	for i := range plan.Nodes {
		machines = append(machines, &plan.Nodes[i])
	}
	for i, m := range machines {
		if len(m.Addresses) != 2 || !m.Addresses[0].Contains(api) || !m.Addresses[1].Contains(api6) {
			t.Fatalf("%s has the addresses %v", m.Name, m.Addresses)
		}
		n := byte(20 + i)
		m.Addresses = []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2 + n%2, n}), 23),
			netip.PrefixFrom(m.Addresses[1].Addr(), 56),
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 7, n}), 16),
		}
	}
	return r, plan
}

// VIPs outside of machineNetwork, of both families (hard case 44): the nodes derive the VIPs'
// network from their interfaces, elect by their addresses there, serve and resolve names with
// them, and fail over.
func TestHardCase44VIPsOutsideMachineNetwork(t *testing.T) {
	testkit.Live(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	r, plan := outside(t)
	c := newLab(t, ctx, r, plan)
	masters := c.ControlPlane()
	for _, n := range masters {
		var s *state.Keepalived
		testkit.Await(t, n.Name+" to take part with its peers in the VIPs' network", func() bool {
			var err error
			s, err = Published[state.Keepalived](n)
			return err == nil && s != nil && len(s.Instances) == 2 && len(s.Instances[0].Peers) == 2 && len(s.Instances[1].Peers) == 2
		})
		for _, i := range s.Instances {
			for _, p := range i.Peers {
				if !slices.ContainsFunc(masters, func(o *Node) bool { return slices.Contains(addrs(o.OwnAddresses()[:2]), p) }) {
					t.Errorf("%s: %s has the peer %s, %v", n.Name, i.Name, p, i.Peers)
				}
			}
		}
	}
	for _, n := range masters {
		testkit.Await(t, "the backends of "+n.Name+" to be in the VIPs' network", func() bool {
			conf, err := os.ReadFile(n.Path(v1alpha1.HAProxyConf))
			return err == nil && !slices.ContainsFunc(masters, func(o *Node) bool {
				return !strings.Contains(string(conf), " "+o.Name+" "+o.Address().String()+":6443")
			})
		})
	}
	for _, n := range c.Nodes() {
		for _, q := range []struct{ name, kind, want string }{
			{"api." + domain, "A", api.String()}, {"api." + domain, "AAAA", api6.String()},
			{n.Name + "." + domain, "A", n.Address().String()}, {n.Name + "." + domain, "AAAA", n.OwnAddresses()[1].Addr().String()},
		} {
			testkit.Await(t, q.name+" "+q.kind+" of "+n.Name+" to be "+q.want, func() bool {
				out, _ := c.Client.Command(ctx, "dig", "+short", "+time=1", "+tries=1", "@"+n.Address().String(), q.name, q.kind).Output()
				return strings.TrimSpace(string(out)) == q.want
			})
		}
	}
	first := c.await(t, ctx, api)
	testkit.Must(t, first.Kill())
	if second := c.await(t, ctx, api); second == first {
		t.Errorf("%s is off and holds the VIP", first.Name)
	}
	if _, err := c.Holder(ctx, api6); err != nil {
		t.Error(err)
	}
	if _, err := c.Holder(ctx, ingress); err != nil {
		t.Error(err)
	}
}

// await waits for the only holder of a VIP, at which the API answers.
func (c *Cluster) await(t *testing.T, ctx context.Context, vip netip.Addr) *Node {
	t.Helper()
	n, err := c.Holder(ctx, vip)
	testkit.Must(t, err)
	testkit.Await(t, fmt.Sprintf("the API at %v", vip), func() bool {
		out, err := c.Client.Command(ctx, "curl", "-sk", "--max-time", "2", fmt.Sprintf("https://%v:6443/readyz", vip)).Output()
		return err == nil && string(out) == "ok"
	})
	return n
}

func addrs(list []netip.Prefix) (out []netip.Addr) {
	for _, p := range list {
		out = append(out, p.Addr())
	}
	return out
}
