package lab

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vipgen/vipgen/render"
)

// demo uses documentation addresses (RFC 5737, RFC 3849). Its load balancer is UserManaged, so that
// vipgen's profile is in effect from the first packet.
const demo = `apiVersion: v1
baseDomain: example.com
metadata:
  name: demo
networking:
  machineNetwork:
  - cidr: 192.0.2.0/24
  - cidr: 2001:db8::/64
controlPlane:
  name: master
  replicas: 3
compute:
- name: worker
  replicas: 2
platform:
  baremetal:
    apiVIPs: [192.0.2.5, "2001:db8::5"]
    ingressVIPs: [192.0.2.6, "2001:db8::6"]
    loadBalancer:
      type: UserManaged
`

// Demo returns a cluster to try the lab with: three control-plane nodes and two workers, IPv4 and
// IPv6.
func Demo() (*render.Cluster, error) {
	c, problems, err := render.Load(render.Sources{InstallConfig: render.File{Name: "demo", Data: []byte(demo)}}, render.Options{})
	if err != nil {
		return nil, err
	}
	return c, problems.Err()
}

// Spare returns machines that can be added to a lab: each has an address of each family that
// neither the cluster nor the plan uses.
func Spare(c *render.Cluster, plan *Plan, names ...string) (out []Machine, err error) {
	p := &planner{config: c.Config, used: map[netip.Addr]bool{}}
	p.reserve()
	for _, m := range append(slices.Clone(plan.Nodes), plan.Client, plan.Site) {
		for _, a := range m.Addresses {
			p.used[a.Addr()] = true
		}
	}
	for _, name := range names {
		m, err := p.machine(name, "")
		if err != nil {
			return nil, fmt.Errorf("more machines than planned: %w", err)
		}
		out = append(out, m)
	}
	return out, nil
}
