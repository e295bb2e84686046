package verify

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/render"
	"github.com/vipgen/vipgen/templates/haproxy"
)

// OwnRequests describes how programs on the nodes of a pool reach the API when they connect to
// an API VIP: kubelet, static pods and pods of the host network.
type OwnRequests struct {
	Role string `json:"role"`
	// Local is set where the node's own HAProxy serves them, wherever the VIP is, so that they
	// do not depend on it. Else the VIP's holder does.
	Local bool `json:"local"`
	// Problem is the reason why they depend on a VIP although they should not, or empty.
	Problem string `json:"problem,omitempty"`
}

// Requests returns those of every pool, from the configuration of HAProxy on its nodes in the
// running cluster; none where nodes hold no API VIP. The setups are the cluster's.
func Requests(c *render.Cluster, setups []Setup) []OwnRequests {
	i := slices.IndexFunc(setups, func(s Setup) bool { return s.Stage == StageRunning && s.Group.Role == v1alpha1.GroupAPI })
	if i < 0 || len(setups[i].Nodes) == 0 {
		return nil
	}
	api, first := setups[i].Group, setups[i].Nodes[0].Facts
	control := v1alpha1.Peer{Name: first.Name, Role: first.Role, Addresses: v1alpha1.OwnAddresses(first.Interfaces)}
	var out []OwnRequests
	for _, role := range c.Roles {
		if role == v1alpha1.RoleBootstrap {
			continue
		}
		r := OwnRequests{Role: role, Local: c.Config.Spec.LocalAPI(role)}
		if r.Local {
			facts := *first
			if role != first.Role { // in the network of the first
				facts.Name, facts.Role = "a node of pool "+role, role
				facts.Peers = append([]v1alpha1.Peer{control}, first.Peers...)
			}
			r.Problem = dependence(haproxy.New(c.Config, &facts), &facts, api.VIPs)
		}
		out = append(out, r)
	}
	return out
}

// dependence returns the reason why connections by a node's HAProxy depend on a VIP, or "".
func dependence(h *haproxy.Conf, n *v1alpha1.Node, vips []netip.Addr) string {
	var missing []string
	for _, p := range append([]v1alpha1.Peer{{Name: n.Name, Role: n.Role}}, n.Peers...) {
		if p.Role == v1alpha1.RoleMaster && !slices.ContainsFunc(h.Backends, func(b haproxy.Backend) bool { return b.Name == p.Name }) {
			missing = append(missing, p.Name)
		}
	}
	for _, b := range h.Backends {
		if a, err := netip.ParseAddrPort(b.Address); err == nil && slices.Contains(vips, a.Addr()) {
			return fmt.Sprintf("backend %s of HAProxy on %s is the VIP %s", b.Name, n.Name, a.Addr())
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("HAProxy on %s has no backend for %s", n.Name, strings.Join(missing, ", "))
	}
	return ""
}
