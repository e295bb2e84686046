package verify_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

// clusterOf is a cluster on platform none, or on OpenStack with both families on
// one port.
func clusterOf(t testing.TB, platform string, masters int, vip string) *render.Cluster {
	t.Helper()
	install := fmt.Sprintf(`apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
networking:
  machineNetwork: [{cidr: 192.0.2.0/24}, {cidr: "2001:db8::/64"}]
controlPlane: {name: master, replicas: %d}
compute: [{name: worker, replicas: 3}]
platform:
  %s
`, masters, platform)
	return clusters.Load(t, install, vip)
}

const (
	bareMetal  = `baremetal: {apiVIPs: [192.0.2.2], ingressVIPs: [192.0.2.3], loadBalancer: {type: UserManaged}}`
	openStack  = `openstack: {apiVIPs: [192.0.2.2, "2001:db8::2"], ingressVIPs: [192.0.2.3, "2001:db8::3"], loadBalancer: {type: UserManaged}}`
	onlyIPv6   = `baremetal: {apiVIPs: ["2001:db8::2"], ingressVIPs: ["2001:db8::3"], loadBalancer: {type: UserManaged}}`
	oldTimes   = "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {vrrp: {profile: classic}}\n"
	everybody  = -1
	anyChanges = -1
)

func setupOf(t testing.TB, c *render.Cluster, group, stage string) verify.Setup {
	t.Helper()
	all, err := verify.Setups(c, verify.Options{})
	testkit.Must(t, err)
	i := slices.IndexFunc(all, func(s verify.Setup) bool { return s.Group.Name == group && s.Stage == stage })
	if i < 0 {
		t.Fatalf("no setup of group %s, stage %s", group, stage)
	}
	return all[i]
}

// edit replaces text in the configuration of one node, or of all.
func edit(t testing.TB, s *verify.Setup, node int, pattern, by string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for i := range s.Nodes {
		if node != everybody && node != i {
			continue
		}
		before := s.Nodes[i].Conf
		s.Nodes[i].Conf = re.ReplaceAll(before, []byte(by))
		if string(s.Nodes[i].Conf) == string(before) && node != everybody {
			t.Fatalf("%q is not in\n%s", pattern, before)
		}
	}
}

// Rules that are broken on purpose: each has a counterexample that shows the failure.
func TestBrokenRules(t *testing.T) {
	type change struct {
		node        int // all nodes, or one by its position in the setup
		pattern, by string
	}
	tests := []struct {
		name            string
		platform, vip   string
		group, stage    string
		edits           []change
		check           verify.Check
		holders, should string // regular expressions
		why             string
		changes         int
	}{
		{name: "the bootstrap has less than a healthy node", group: "api", stage: "installation",
			edits: []change{{0, `priority 70`, "priority 60"}},
			check: verify.BootstrapKeeps, holders: `^\[master-\d\]$`, should: `^bootstrap$`, why: "its API server lives"},
		{name: "points of a term lift a node over the bootstrap", group: "api", stage: "installation",
			edits: []change{{everybody, `machine-config weight 3`, "machine-config weight 30"}},
			check: verify.BootstrapKeeps, holders: `^\[master-\d\]$`, should: `^bootstrap$`, why: "its API server lives"},
		{name: "the machine config server counts more than the load balancer", group: "api", stage: "running",
			edits: []change{{everybody, `machine-config weight 3`, "machine-config weight 30"}},
			check: verify.Serves, holders: `^\[master-\d\]$`, should: `^master-\d$`, why: "through HAProxy"},
		{name: "the load balancer path does not count", group: "api", stage: "running",
			edits: []change{{everybody, ` lb-path weight 20\n`, "\n"}},
			check: verify.Serves, holders: `^\[master-\d\]$`, should: `^master-\d$`, why: "through HAProxy"},
		{name: "weight 0 makes a healthy load balancer a fault", group: "api", stage: "running",
			edits: []change{{everybody, ` lb-path weight 20\n`, " lb-path weight 0\n"}},
			check: verify.Serves, holders: `^\[\]$`, should: `^master-\d$`, why: "no node holds the VIP"},
		{name: "nobody preempts", group: "api", stage: "running",
			edits: []change{{everybody, `state BACKUP`, "state BACKUP\n    nopreempt"}},
			check: verify.Serves, holders: `^\[master-\d\]$`, should: `^master-\d$`, why: "through HAProxy", changes: anyChanges},
		{name: "a node that comes back claims the VIP", group: "api", stage: "running",
			edits: []change{{2, `state BACKUP`, "state MASTER"}},
			check: verify.NoNeedlessMove, holders: `^\[master-2\]$`, should: `^master-[01]$`, why: "nothing better elsewhere", changes: 1},
		{name: "one node is preferred", group: "api", stage: "running",
			edits: []change{{0, `priority 40`, "priority 41"}},
			check: verify.NoNeedlessMove, holders: `^\[master-0\]$`, should: `^master-[12]$`, why: "nothing better elsewhere", changes: anyChanges},
		{name: "nobody vetoes a node without a router", group: "ingress", stage: "running",
			edits: []change{{everybody, `ingress-away weight 0`, ""}},
			check: verify.IngressRouter, holders: `^\[worker-\d\]$`, should: `^no node`, why: "no router answers"},
		{name: "whose router it is counts less than its readiness", group: "ingress", stage: "running",
			edits: []change{{everybody, `ingress-here weight 50`, "ingress-here weight 5"}},
			check: verify.IngressRouter, holders: `^\[worker-\d\]$`, should: `^worker-\d$`, why: "of an unknown ingress controller"},
		{name: "one node has another version", group: "api", stage: "running",
			edits: []change{{1, `version 3`, "version 2"}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "VRRPv3 and VRRPv2|VRRPv2 and VRRPv3"},
		{name: "one node has another virtual router ID", group: "api", stage: "running",
			edits: []change{{1, `virtual_router_id \d+`, "virtual_router_id 7"}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "virtual router IDs"},
		{name: "one node is no peer of the others", group: "api", stage: "running",
			edits: []change{{0, `192.0.2.5 min_ttl 255`, ""}, {1, `192.0.2.5 min_ttl 255`, ""}},
			check: verify.OneHolder, holders: `master-2`, should: "^one of them", why: "no peer of|no advertisements from"},
		{name: "adverts of one node look as if they came from afar", group: "api", stage: "running",
			edits: []change{{1, `unicast_ttl 255`, "unicast_ttl 64"}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "with TTL 64"},
		{name: "one node sends to everybody", group: "api", stage: "running",
			edits: []change{{1, `(?s)unicast_src_ip.*?}`, ""}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "the other by multicast"},
		{name: "one node has another password", vip: oldTimes, group: "api", stage: "running",
			edits: []change{{1, `auth_pass \w+`, "auth_pass other"}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "passwords differ"},
		{name: "one node has another interval", vip: oldTimes, group: "api", stage: "running",
			edits: []change{{1, `advert_int 1`, "advert_int 2"}},
			check: verify.OneHolder, holders: `master-1`, should: "^one of them", why: "every 1s and every 2s|every 2s and every 1s"},
		{name: "families of one port may part", platform: openStack, group: "api", stage: "running",
			edits: []change{{everybody, `(?s)vrrp_sync_group.*?\n}`, ""}},
			check: verify.Together, holders: `master-\d master-\d`, should: "both VIPs", why: "nothing ties"},
		{name: "families of one port pull apart", platform: openStack, group: "api", stage: "running",
			edits: []change{
				{0, `(?s)(API_0 \{.*?priority) 40`, "${1} 42"},
				{1, `(?s)(API_1 \{.*?priority) 40`, "${1} 42"},
			},
			check: verify.NoOscillation, holders: `master-0 master-1`, should: "for good", why: "repeatedly"},
	}
	whole := map[string]bool{} // setups that are proven without a change
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			platform := tt.platform
			if platform == "" {
				platform = bareMetal
			}
			s := setupOf(t, clusterOf(t, platform, 3, tt.vip), tt.group, tt.stage)
			if name := platform + tt.vip + tt.group + tt.stage; !whole[name] {
				whole[name] = true
				for _, p := range prove(t, &s) {
					if p.Counterexample != nil {
						t.Fatalf("before anything is broken: %+v", p.Counterexample)
					}
				}
			}
			for _, e := range tt.edits {
				edit(t, &s, e.node, e.pattern, e.by)
			}
			proofs, err := s.Prove(nil)
			testkit.Must(t, err)
			i := slices.IndexFunc(proofs, func(p verify.Proof) bool { return p.Counterexample != nil })
			if i < 0 {
				t.Fatal("no counterexample")
			}
			c := proofs[i].Counterexample
			for what, match := range map[string][2]string{
				"holders": {tt.holders, fmt.Sprint(c.Holders)}, "should": {tt.should, c.Should}, "why": {tt.why, c.Why},
			} {
				if !regexp.MustCompile(match[0]).MatchString(match[1]) {
					t.Errorf("%s: %q, want %q", what, match[1], match[0])
				}
			}
			if c.Check != tt.check || tt.changes != anyChanges && len(c.Changes) != tt.changes {
				t.Errorf("%s after %d changes, want %s after %d", c.Check.Name, len(c.Changes), tt.check.Name, tt.changes)
			}
			if len(c.Start) != len(s.Nodes) || len(c.End) != len(s.Nodes) {
				t.Errorf("%d nodes at first, %d in the end, of %d", len(c.Start), len(c.End), len(s.Nodes))
			}
			if t.Failed() {
				t.Logf("%+v", c)
			}
		})
	}
}

// A configuration that cannot be parsed is an error with its position, not a proof.
func TestUnreadable(t *testing.T) {
	c := clusterOf(t, bareMetal, 3, "")
	for by, want := range map[string]string{
		"":                        "lacks its virtual_router_id, interface or VIP",
		"track_file {\n moon\n }": `"moon" is not defined`,
	} {
		s := setupOf(t, c, "api", "running")
		pattern := `state BACKUP`
		if by == "" {
			pattern = `interface \S+`
		}
		edit(t, &s, 1, pattern, by)
		if _, err := s.Prove(nil); err == nil || !strings.Contains(err.Error(), "keepalived.conf of master-1: ") {
			t.Errorf("%q: error %v", by, err)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", by, err, want)
		}
	}
}

// TestEveryCombination proves the properties of each number of control-plane nodes, with the
// bootstrap host.
func TestEveryCombination(t *testing.T) {
	// A control-plane node has 14 kinds of states that its peers can distinguish, the bootstrap
	// host 3.
	t.Run("three", func(t *testing.T) { everyCombination(t, 3, 3*14*14*14) })
	// All reachable states; the slowest part.
	t.Run("five", func(t *testing.T) {
		testkit.Long(t)
		everyCombination(t, 5, 3*14*14*14*14*14)
	})
}

func everyCombination(t *testing.T, masters, want int) {
	s := setupOf(t, clusterOf(t, bareMetal, masters, ""), "api", "installation")
	if len(s.Nodes) != masters+1 {
		t.Fatalf("%d nodes", len(s.Nodes))
	}
	told := 0
	proofs, err := s.Prove(func(_ string, done, total int) {
		if done < told || done >= total {
			t.Errorf("%d of %d after %d", done, total, told)
		}
		told = done
	})
	testkit.Must(t, err)
	if p := proofs[0]; p.Counterexample != nil || p.Combinations != want {
		t.Errorf("%d combinations, want %d; %+v", p.Combinations, want, p.Counterexample)
	}
}

// Treating equivalent nodes as one changes neither results nor counts.
func TestNodesAlike(t *testing.T) {
	for _, group := range []string{"api", "ingress"} {
		s := setupOf(t, clusterOf(t, bareMetal, 3, ""), group, "running")
		alike, err := s.Prove(nil)
		testkit.Must(t, err)
		each, err := s.ProveOneByOne()
		testkit.Must(t, err)
		testkit.Equal(testkit.In(t, group), each, alike[0], sameAddresses)
	}
}

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
