package reference

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/pod"
)

var (
	api     = netip.MustParseAddr("192.0.2.5")
	ingress = netip.MustParseAddr("192.0.2.6")
	api6    = netip.MustParseAddr("2001:db8::5")
	moved   = netip.MustParseAddr("192.0.2.8")
	moved6  = netip.MustParseAddr("2001:db8::8")
	control = []string{"master:10", "master:11", "master:12"}
)

// plane is a control plane with OpenShift's current files, with a client outside.
type plane struct {
	t        *testing.T
	machines []*machine
	client   *netns.Node
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	network := daemon.NewNetwork(t)
	p := &plane{t: t, client: daemon.AddNode(t, network, "client", "192.0.2.200/24", "2001:db8::200/64")}
	for i := range control {
		facts := node("master", 10+i, control...)
		facts.Peers = append(facts.Peers[:i], facts.Peers[i+1:]...)
		p.machines = append(p.machines, newMachine(t, network, facts))
	}
	for _, m := range p.machines {
		m.boot()
	}
	return p
}

// holder waits until one machine alone holds a VIP, which must not be one of not.
func (p *plane) holder(vip netip.Addr, not ...*machine) *machine {
	p.t.Helper()
	var found *machine
	testkit.Await(p.t, fmt.Sprintf("one holder of %s", vip), func() bool {
		found = nil
		for _, m := range p.machines {
			switch {
			case !m.On() || !m.holds(vip):
			case found != nil:
				return false
			default:
				found = m
			}
		}
		for _, m := range not {
			if found == m {
				return false
			}
		}
		return found != nil
	})
	return found
}

// balanced waits until two API servers have answered at a VIP. Without the redirect to HAProxy
// only the holder's would.
func (p *plane) balanced(from *netns.Node, vip netip.Addr) {
	p.t.Helper()
	seen := map[string]bool{}
	testkit.Await(p.t, fmt.Sprintf("two servers to answer %s at %s", from.Name, vip), func() bool {
		if server := ask(from, vip); server != "" {
			seen[server] = true
		}
		return len(seen) > 1
	})
}

// TestReference runs a control plane of OpenShift without vipgen: one node holds the VIP, and
// another one takes it after a fault.
func TestReference(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	p := newPlane(t)
	for _, m := range p.machines {
		m.said("keepalived", "keepalived", "VRRP_Script(chk_ocp_lb) succeeded")
	}
	old := p.holder(api)
	p.holder(api6)
	for _, vip := range []netip.Addr{api, api6} {
		p.balanced(p.client, vip)
		p.balanced(p.holder(vip).Node, vip)
	}
	if old.holds(ingress) {
		t.Error("an ingress VIP is on a node without a router")
	}

	began := time.Now()
	old.remove("haproxy")
	p.holder(api, old)
	t.Logf("HAProxy stopped on the holder: another one after %.1f s", time.Since(began).Seconds())
	p.holder(api6, old)
	old.said("keepalived", "keepalived", "VRRP_Script(chk_ocp_lb) failed")
	if old.redirects() {
		t.Error("the redirect outlived HAProxy")
	}
	p.balanced(p.client, api)

	began = time.Now()
	p.change()
	t.Logf("other VIPs: held, balanced and the old ones gone after %.1f s", time.Since(began).Seconds())
	p.balanced(p.client, moved)

	dead := p.holder(moved)
	began = time.Now()
	dead.powerOff()
	p.holder(moved)
	t.Logf("the holder died: another one after %.1f s", time.Since(began).Seconds())
	p.holder(moved6)
	testkit.Await(t, "an answer at the VIP", func() bool { return ask(p.client, moved) != "" })
}

// change configures another pair of API VIPs and an additional peer on all nodes, and restores
// HAProxy on the one that lost it; no pod is replaced.
func (p *plane) change() {
	p.t.Helper()
	pods := map[*pod.Pod]bool{}
	for _, m := range p.machines {
		for _, one := range m.kubelet.Pods() {
			pods[one] = true
		}
		m.facts.Peers = append(m.facts.Peers, node("master", 10, "master:13").Peers...)
		m.install(cluster(func(s *v1alpha1.ClusterConfigSpec) { s.Groups[0].VIPs = []netip.Addr{moved, moved6} }))
	}
	p.holder(moved)
	p.holder(moved6)
	for _, m := range p.machines {
		testkit.Await(p.t, "the old VIPs to go from "+m.Name, func() bool { return !m.holds(api) && !m.holds(api6) })
		testkit.Await(p.t, "HAProxy and the redirect on "+m.Name, m.redirects)
		testkit.Await(p.t, "HAProxy to read its other configuration on "+m.Name, func() bool {
			c, err := m.kubelet.Container("haproxy", "haproxy")
			// One that was signalled before it could handle it started with the new file.
			return err == nil && (strings.Count(c.Log(), "Loading success.") > 1 || c.Status().Restarts > 0)
		})
		for _, one := range m.kubelet.Pods() {
			delete(pods, one)
		}
	}
	testkit.Empty(p.t, pods)
}

// The bootstrap host holds the VIP until its API server has ended, and again when that returns.
func TestBootstrap(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	network := daemon.NewNetwork(t)
	m := newMachine(t, network, node("bootstrap", 9, "master:10"))
	m.boot()
	testkit.Await(t, "the bootstrap to hold the VIP", func() bool { return m.holds(api) && m.holds(api6) })
	testkit.Await(t, "the bootstrap's API server at the VIP", func() bool { return ask(m.Node, api) == m.Name })
	m.stopAPI()
	testkit.Await(t, "the VIP to go", func() bool { return !m.holds(api) && !m.holds(api6) })
	m.startAPI()
	testkit.Await(t, "the VIP to return", func() bool { return m.holds(api) && m.holds(api6) })
}

// A VIP that an unclean end left on an interface is removed before keepalived starts.
func TestStaleVIP(t *testing.T) {
	t.Parallel()
	network := daemon.NewNetwork(t)
	m := newMachine(t, network, node("bootstrap", 9, "master:10"))
	stale := netip.PrefixFrom(api, 24)
	testkit.Must(t, m.AddAddress("eth0", stale))
	m.boot()
	testkit.Await(t, "the VIP with a host prefix alone", func() bool {
		have, err := m.Addresses()
		testkit.Must(t, err)
		n := 0
		for _, a := range have {
			if a.Addr() == api {
				n++
			}
			if a == stale {
				return false
			}
		}
		return n == 1
	})
}

// The ingress VIP is on a node with a router of the default ingress controller, else on one
// whose router answers, else on none.
func TestIngress(t *testing.T) {
	t.Parallel()
	network := daemon.NewNetwork(t)
	// A host that has the API VIP as its own address stands in for the control plane.
	pods := serve(t, daemon.AddNode(t, network, "control", api.String()+"/24", api6.String()+"/64"), 6443, true, answerPods)
	t.Cleanup(func() { pods.Config.Close() })
	ca, err := authority.New("kubelets")
	testkit.Must(t, err)
	p := &plane{t: t}
	for _, facts := range []*v1alpha1.Node{node("worker", 20, "worker:21"), node("worker", 21, "worker:20")} {
		m := newMachine(t, network, facts)
		pair, err := ca.Client("system:node:"+m.Name, "system:nodes")
		testkit.Must(t, err)
		testkit.Must(t, m.Write("/var/lib/kubelet/pki/kubelet-client-current.pem", pair.Both()))
		p.machines = append(p.machines, m)
	}
	var routers []func()
	for _, m := range p.machines {
		router := serve(t, m.Node, 1936, false, func(http.ResponseWriter, *http.Request) {})
		stop := sync.OnceFunc(func() { router.Config.Close() })
		t.Cleanup(stop)
		routers = append(routers, stop)
		m.boot()
	}
	first, second := p.machines[0], p.machines[1]
	first.said("keepalived", "keepalived", "VRRP_Script(chk_default_ingress) succeeded")
	second.said("keepalived", "keepalived", "VRRP_Script(chk_default_ingress) failed")
	// At equal priority, the higher address would hold it.
	p.holder(ingress, second)
	routers[0]()
	p.holder(ingress, first)
	routers[1]()
	testkit.Await(t, "the ingress VIP to go", func() bool { return !first.holds(ingress) && !second.holds(ingress) })
}

// answerPods lists a router of the default ingress controller on worker-20, to clients with a
// certificate that may do so, like kubelet.
func answerPods(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/namespaces/openshift-ingress/pods" || len(r.TLS.PeerCertificates) == 0,
		query.Get("labelSelector") != "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=default":
		w.WriteHeader(http.StatusForbidden)
	case query.Get("fieldSelector") == "spec.nodeName=worker-20":
		io.WriteString(w, `{"items":[{"metadata":{"name":"router"},"spec":{"nodeName":"worker-20"}}]}`)
	default:
		io.WriteString(w, `{"items":[]}`)
	}
}
