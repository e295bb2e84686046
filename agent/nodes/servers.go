package nodes

import (
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// servers returns the base URLs of the API servers that a node may read from, by
// preference. kubeconfig is the server in the kubeconfig, nodes are all known nodes.
//
// The node's own API server comes first, then those of the control-plane nodes at their
// own addresses. The server of the kubeconfig is normally the API VIP or a name for it:
// it comes last, and is left out on nodes that take part in the election of that VIP
// (hard case 5), except on an arbiter that knows no control-plane node: it has no API
// server, and no other way to learn of the first.
func servers(spec *v1alpha1.ClusterConfigSpec, self, role, kubeconfig string, nodes []v1alpha1.Peer) []string {
	local := "https://localhost:" + strconv.Itoa(spec.Ports.API)
	if role == v1alpha1.RoleBootstrap {
		return []string{local}
	}
	peers := peerServers(spec, self, nodes)
	var out []string
	if role == v1alpha1.RoleMaster {
		out = append(out, local)
	}
	out = append(out, peers...)
	elects := role == v1alpha1.RoleMaster || role == v1alpha1.RoleArbiter && len(peers) > 0
	if kubeconfig != "" && (!elects || spec.LoadBalancer != v1alpha1.LoadBalancerInCluster) {
		out = append(out, kubeconfig)
	}
	return compact(out)
}

// peerServers returns the API servers of other nodes: of the control plane, rotated by
// node name to share the load, then of the bootstrap. The second address family of a node
// comes after all others, so that a dead node costs one timeout.
func peerServers(spec *v1alpha1.ClusterConfigSpec, self string, nodes []v1alpha1.Peer) []string {
	var masters, bootstraps []v1alpha1.Peer
	for _, p := range nodes {
		switch {
		case p.Name == self:
		case p.Role == v1alpha1.RoleMaster:
			masters = append(masters, p)
		case p.Role == v1alpha1.RoleBootstrap:
			bootstraps = append(bootstraps, p)
		}
	}
	if len(masters) > 0 {
		h := fnv.New32a()
		h.Write([]byte(self))
		first := int(h.Sum32() % uint32(len(masters)))
		masters = slices.Concat(masters[first:], masters[:first])
	}
	return append(urls(masters, spec.Ports.API), urls(bootstraps, spec.Ports.API)...)
}

func urls(peers []v1alpha1.Peer, port int) []string {
	var out []string
	for _, is4 := range []bool{true, false} {
		for _, p := range peers {
			i := slices.IndexFunc(p.Addresses, func(a netip.Addr) bool { return a.Is4() == is4 })
			if i >= 0 {
				out = append(out, "https://"+netip.AddrPortFrom(p.Addresses[i], uint16(port)).String())
			}
		}
	}
	return out
}

// compact removes duplicates after the first.
func compact(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Bounds of the delay after which a failed server is tried again.
const (
	backoffMin = time.Second
	backoffMax = 3 * time.Second
)

// jittered returns d less a random part, so that the nodes do not ask all at once.
func jittered(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d/4))) }

type failures map[string]*failure

type failure struct {
	wait  time.Duration // delay of the next attempt
	until time.Time     // time of the next attempt
}

func (f failures) backingOff(server string, now time.Time) bool {
	x := f[server]
	return x != nil && now.Before(x.until)
}

// add records a failure, and reports whether it is the first.
func (f failures) add(server string, now time.Time) (news bool) {
	x := f[server]
	if x == nil {
		x = &failure{}
		f[server] = x
		news = true
	}
	x.wait = min(max(2*x.wait, backoffMin), backoffMax)
	x.until = now.Add(jittered(x.wait))
	return news
}

// retry allows an attempt at once. The failure is remembered until one succeeds.
func (f failures) retry(server string) {
	if x := f[server]; x != nil {
		x.until = time.Time{}
	}
}
