package network

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

const examples = "../../../examples/"

func short(rules []Rule) (out []string) {
	for _, r := range rules {
		out = append(out, fmt.Sprintf("%s/%d %s", r.Protocol, r.Port, r.From))
	}
	return out
}

func TestRules(t *testing.T) {
	multicast := func(s *v1alpha1.ClusterConfigSpec) { s.VRRP.Target.Mode, s.VRRP.Start = v1alpha1.ModeMulticast, nil }
	external := func(s *v1alpha1.ClusterConfigSpec) { s.LoadBalancer = v1alpha1.LoadBalancerExternal }
	base := []string{"udp/53 this node and its pods", "udp/5353 nodes on the link"}
	for name, tt := range map[string]struct {
		role   string
		change func(*v1alpha1.ClusterConfigSpec)
		tcp    []string
		more   []string
	}{
		"control plane": {"master", nil, []string{"tcp/53 this node and its pods", "tcp/6443 clients", "tcp/9445 clients", "tcp/9459 nodes", "tcp/22623 clients"}, []string{"vrrp/0 nodes"}},
		"workers":       {"worker", nil, []string{"tcp/53 this node and its pods", "tcp/80 clients", "tcp/443 clients", "tcp/9459 nodes"}, []string{"vrrp/0 nodes"}},
		"bootstrap":     {"bootstrap", nil, []string{"tcp/53 this node and its pods", "tcp/6385 nodes", "tcp/6443 clients", "tcp/9459 nodes", "tcp/22623 clients"}, []string{"vrrp/0 nodes"}},
		"HAProxy for their own programs": {"worker", func(s *v1alpha1.ClusterConfigSpec) { s.APIServer.Local = v1alpha1.LocalAPIAllNodes },
			[]string{"tcp/53 this node and its pods", "tcp/80 clients", "tcp/443 clients", "tcp/9459 nodes"}, []string{"vrrp/0 nodes"}},
		"multicast": {"worker", multicast, []string{"tcp/53 this node and its pods", "tcp/80 clients", "tcp/443 clients"}, []string{"vrrp/0 nodes on the link"}},
		"external":  {"worker", external, []string{"tcp/53 this node and its pods", "tcp/80 the load balancer", "tcp/443 the load balancer", "tcp/1936 the load balancer"}, nil},
		"other ports": {"master", func(s *v1alpha1.ClusterConfigSpec) { s.Ports.HAProxy = 7443 },
			[]string{"tcp/53 this node and its pods", "tcp/6443 clients", "tcp/7443 clients", "tcp/9459 nodes", "tcp/22623 clients"}, []string{"vrrp/0 nodes"}},
		"metrics": {"worker", func(s *v1alpha1.ClusterConfigSpec) { s.Metrics = v1alpha1.MetricsOnNode },
			[]string{"tcp/53 this node and its pods", "tcp/80 clients", "tcp/443 clients", "tcp/9455 nodes", "tcp/9457 nodes", "tcp/9458 nodes", "tcp/9459 nodes"}, []string{"vrrp/0 nodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := clusters.Folder(t, examples+"dual-stack")
			if tt.change != nil {
				tt.change(&c.Config.Spec)
			}
			want := slices.Concat(tt.tcp, base, tt.more)
			testkit.Equal(t, want, short(Rules(c, tt.role)))
		})
	}
}

// TestRulesForRouters: BFD and router advertisements of routers, where a session has them.
func TestRulesForRouters(t *testing.T) {
	for peer, want := range map[string]string{
		"address: 192.0.2.1, asn: 64601":                     "udp dport 3784",
		"interface: ens3, asn: 64601, bfd: {enabled: false}": "meta l4proto ipv6-icmp",
	} {
		var text bytes.Buffer
		c := clusters.Load(t, install, strings.ReplaceAll(vips, `, "2001`, `] #`)+"  announce: bgp\n  bgp: {localASN: 64512, peers: [{"+peer+"}]}\n")
		testkit.Must(t, NFT(&text, Rules(c, v1alpha1.RoleMaster)))
		testkit.Contains(t, text.String(), "input "+want+" accept")
		testkit.Equal(t, 1, strings.Count(text.String(), "3784")+strings.Count(text.String(), "icmp"))
	}
}

// Nodes may be in other networks than the machine networks suggest if the VIPs are (hard case
// 44).
func TestNetworks(t *testing.T) {
	c := clusters.Folder(t, examples+"dual-stack")
	c.Config.Spec.MachineNetworks = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	for _, r := range Rules(c, "master") {
		testkit.Empty(t, r.Networks)
	}
}

// Every address that a rendered daemon binds, except loopback, has its rule.
func TestRulesMatchTheDaemons(t *testing.T) {
	c := clusters.Folder(t, examples+"dual-stack")
	node := &v1alpha1.Node{Name: "master-0", Role: v1alpha1.RoleMaster,
		Interfaces: []v1alpha1.Interface{{Name: "ens3", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}}},
		Peers:      []v1alpha1.Peer{{Name: "master-1", Role: v1alpha1.RoleMaster, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.11")}}},
	}
	files, err := render.Preview(c.Config, node)
	testkit.Must(t, err)
	rules := Rules(c, v1alpha1.RoleMaster)
	open := func(port string) bool {
		return slices.ContainsFunc(rules, func(r Rule) bool { return strconv.Itoa(r.Port) == port })
	}
	listens := regexp.MustCompile(`(?m)^\s*bind (\S*):(\d+)|^\.:(\d+) \{`)
	seen := 0
	for _, f := range files {
		for _, m := range listens.FindAllStringSubmatch(string(f.Data), -1) {
			if m[1] == "127.0.0.1" || m[1] == "[::1]" {
				continue
			}
			if seen++; !open(m[2] + m[3]) {
				t.Errorf("%s: %s is not among the rules", f.Path, m[0])
			}
		}
	}
	if seen < 2 {
		t.Errorf("%d addresses are bound", seen)
	}
}

// nftables loads the rules.
func TestNFT(t *testing.T) {
	testkit.Privileged(t)
	for _, name := range []string{"dual-stack", "baremetal", "none"} {
		c := clusters.Folder(t, examples+name)
		text := bytes.NewBufferString("add table inet filter\nadd chain inet filter input { type filter hook input priority 0; policy drop; }\n")
		for _, role := range c.Roles {
			testkit.Must(t, NFT(text, Rules(c, role)))
		}
		nft := exec.CommandContext(context.Background(), "nft", "--check", "--file", "-")
		nft.Stdin = bytes.NewReader(text.Bytes())
		testkit.Run(testkit.In(t, name, text), nft)
	}
}

func TestFirewalld(t *testing.T) {
	c := clusters.Folder(t, examples+"dual-stack")
	var out strings.Builder
	testkit.Must(t, Firewalld(&out, Rules(c, v1alpha1.RoleWorker)))
	for _, want := range []string{
		`firewall-cmd --permanent --add-rich-rule='rule port port="443" protocol="tcp" accept'`,
		`firewall-cmd --permanent --add-rich-rule='rule family="ipv6" source address="2001:db8:0:1::/64" protocol value="vrrp" accept'`,
		`firewall-cmd --permanent --add-rich-rule='rule family="ipv4" destination address="224.0.0.251" port port="5353" protocol="udp" accept'`,
	} {
		testkit.Contains(testkit.In(t, want), out.String(), want+"\n")
	}
	if !strings.HasSuffix(out.String(), "\nfirewall-cmd --reload\n") {
		t.Errorf("no reload at the end of\n%s", out.String())
	}
}
