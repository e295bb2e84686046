package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// Parse parses a keepalived.conf. It is strict: an unknown statement may change the holder of a
// VIP, so it is an error. Every instance has one VIP.
func Parse(text []byte) (*keepalivedconf.Config, error) {
	c, problems := keepalivedconf.Read(text)
	problems = slices.Concat(problems, c.Unread)
	if len(problems) > 0 {
		first := slices.MinFunc(problems, func(a, b keepalivedconf.Problem) int { return cmp.Compare(a.Line, b.Line) })
		return nil, &first
	}
	if err := check(c); err != nil {
		return nil, err
	}
	return c, nil
}

func check(c *keepalivedconf.Config) error {
	names := map[string]bool{}
	for _, i := range c.Instances {
		switch {
		case names[i.Name]:
			return fmt.Errorf("two instances are called %s", i.Name)
		case i.RouterID == 0 || i.Interface == "" || len(i.VIPs) == 0:
			return fmt.Errorf("instance %s lacks its virtual_router_id, interface or VIP", i.Name)
		case len(i.VIPs) > 1:
			return fmt.Errorf("instance %s has %d VIPs, expected one", i.Name, len(i.VIPs))
		case i.Priority > vrrp.HighestPriority:
			return fmt.Errorf("instance %s has priority %d, expected %d at most", i.Name, i.Priority, vrrp.HighestPriority)
		case len(i.Peers) > 0 && !i.Source.IsValid():
			return fmt.Errorf("instance %s has unicast peers and no unicast_src_ip", i.Name)
		}
		names[i.Name] = true
	}
	taken := map[string]bool{}
	for _, g := range c.SyncGroups {
		if len(g.Members) == 0 {
			return fmt.Errorf("sync group %s is empty", g.Name)
		}
		for _, m := range g.Members {
			if !names[m] || taken[m] {
				return fmt.Errorf("sync group %s: %s is not an instance, or is in two groups", g.Name, m)
			}
			taken[m] = true
		}
	}
	return nil
}
