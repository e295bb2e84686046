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

// servers returns the base URLs of the API servers that a node may read from,
// the preferred one first. kubeconfig is the server that the kubeconfig names,
// nodes are all that are known.
//
// That of the node itself comes first, then those of the control-plane nodes at
// their own addresses. The one of the kubeconfig is the API VIP, or a name for
// it, as a rule: it comes last, and not at all on nodes that take part in
// deciding who holds that VIP (hard case 5). The exception is an arbiter that
// knows no control-plane node: it has no API server itself and no other way to
// get to know the first.
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

// peerServers are the API servers of other nodes: of the control plane, each
// node starting at another one so that they share the load, then of the
// bootstrap. A node that is reached by two families has two, the second after
// all others have been tried: a node that is gone is waited for once.
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

func urls(of []v1alpha1.Peer, port int) []string {
	var out []string
	for _, is4 := range []bool{true, false} {
		for _, p := range of {
			i := slices.IndexFunc(p.Addresses, func(a netip.Addr) bool { return a.Is4() == is4 })
			if i >= 0 {
				out = append(out, "https://"+netip.AddrPortFrom(p.Addresses[i], uint16(port)).String())
			}
		}
	}
	return out
}

// compact removes all but the first of equal strings.
func compact(in []string) []string {
	var out []string
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// A server that fails is left alone for a while, longer each time.
const (
	backoffMin = time.Second
	backoffMax = 3 * time.Second
)

// jittered is a little less than d, at random, so that nodes do not come all at
// once.
func jittered(d time.Duration) time.Duration { return d - time.Duration(rand.Int64N(int64(d/4))) }

// failures remembers which servers failed.
type failures map[string]*failure

type failure struct {
	wait  time.Duration // before the next attempt
	until time.Time     // of the next attempt
}

// away says whether the server is to be left alone.
func (f failures) away(server string, now time.Time) bool {
	x := f[server]
	return x != nil && now.Before(x.until)
}

// add notes that the server failed, and says whether that is news.
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

// retry lets a server be tried again at once. That it failed stays known until
// it has been of use.
func (f failures) retry(server string) {
	if x := f[server]; x != nil {
		x.until = time.Time{}
	}
}
