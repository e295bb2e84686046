package verify_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/proof/verify"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// steps is the number of situations of a setup that are tried with the real keepalived.
const steps = 10

// Real keepalived daemons, with the configurations that the proof reads, agree with it on the
// holder of the VIP. Only situations with one outcome regardless of the previous holder are
// tried, so that the machine's speed does not matter.
func TestProofMatchesKeepalived(t *testing.T) {
	for _, tt := range []struct {
		name, platform, vip, group, stage string
		pattern, by                       string // an edit of the second node's configuration
	}{
		{name: "API", platform: bareMetal, group: "api", stage: "running"},
		{name: "bootstrap", platform: bareMetal, group: "api", stage: "installation"},
		{name: "classic", platform: bareMetal, vip: oldTimes, group: "api", stage: "running"},
		{name: "ingress", platform: bareMetal, group: "ingress", stage: "running"},
		{name: "families together", platform: openStack, group: "api", stage: "running"},
		{name: "another version", platform: bareMetal, group: "api", stage: "running", pattern: "version 3", by: "version 2"},
		{name: "another virtual router ID", platform: bareMetal, group: "api", stage: "running", pattern: `virtual_router_id \d+`, by: "virtual_router_id 7"},
		{name: "adverts from afar", platform: bareMetal, group: "api", stage: "running", pattern: "unicast_ttl 255", by: "unicast_ttl 64"},
		{name: "the usual TTL", platform: bareMetal, group: "api", stage: "running", pattern: "unicast_ttl 255", by: ""},
		{name: "the usual TTL, IPv6", platform: onlyIPv6, group: "api", stage: "running", pattern: "unicast_ttl 255", by: ""},
		{name: "peers and everybody", platform: bareMetal, group: "api", stage: "running", pattern: `(?s)unicast_src_ip.*?}`, by: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := setupOf(t, clusterOf(t, tt.platform, 3, tt.vip), tt.group, tt.stage)
			if tt.pattern != "" {
				edit(t, &s, 1, tt.pattern, tt.by)
			}
			all, err := verify.Foresee(&s)
			testkit.Must(t, err)
			if len(all) < steps {
				t.Fatalf("%d situations", len(all))
			}
			members := map[string]daemon.Member{}
			for _, n := range s.Nodes {
				members[n.Facts.Name] = daemon.Member{Addresses: n.Facts.Interfaces[0].Addresses, Link: n.Facts.Interfaces[0].Name, Config: n.Conf}
			}
			c := daemon.NewCluster(t, s.Group.VIPs[0], members)
			for i := range steps {
				f := all[i*len(all)/steps]
				// Repeated every second, like the agent: keepalived may not watch yet.
				var written time.Time
				write := func() {
					if time.Since(written) < time.Second {
						return
					}
					for _, node := range slices.Sorted(maps.Keys(f.Files)) {
						for _, path := range slices.Sorted(maps.Keys(f.Files[node])) {
							c.WriteFile(node, path, []byte(f.Files[node][path]))
						}
					}
					written = time.Now()
				}
				for _, vip := range s.Group.VIPs {
					held := func() bool { return slices.Equal(c.HoldersOf(vip), f.Holders) }
					write()
					for deadline := time.Now().Add(time.Minute); !held(); time.Sleep(20 * time.Millisecond) {
						write()
						if time.Now().After(deadline) {
							t.Fatalf("%s is held by %q, and by %q in the proof, with %v", vip, c.HoldersOf(vip), f.Holders, f.Files)
						}
					}
				}
			}
		})
	}
}
