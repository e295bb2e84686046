package agents

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/agentcli"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
)

// publisher is a node with the mdns pod.
type publisher struct{ *service }

func newPublisher(t *testing.T, network *netns.Network, name string, addresses ...string) publisher {
	t.Helper()
	return publisher{newContainer(nodeIn(t, network, name, addresses...), pod.MDNS, pod.MDNS)}
}

func (p publisher) awaitState(what string, ok func(state.MDNS) bool) state.MDNS {
	p.t.Helper()
	var s state.MDNS
	p.await(what, func() bool {
		var alive bool
		s, alive = published[state.MDNS](p.service)
		return alive && ok(s)
	})
	return s
}

func announced(s state.MDNS) bool { return s.Announced }

// finds returns a predicate for a host found with exactly these addresses.
func finds(host string, want ...string) func(state.MDNS) bool {
	return func(s state.MDNS) bool {
		got := "none"
		for _, h := range s.Hosts {
			if h.Name == host {
				got = job.Addresses(h.Addresses)
			}
		}
		return got == strings.Join(want, " ")
	}
}

// ip runs iproute2 on the node.
func (p publisher) ip(args ...string) {
	p.t.Helper()
	testkit.Run(p.t, p.Command(context.Background(), "ip", args...))
}

// Hard case 15: the name follows the node's address, also to another link. The peer's resolver,
// and the discovered host, are avahi; another avahi runs next to the agent, and binds port 5353
// of the node's own addresses.
func TestHardCase15MDNSPodWithAvahi(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	network := daemon.NewNetwork(t)
	p := newPublisher(t, network, "master-0.dual.example.com", "192.0.2.10/24", "2001:db8:0:1::10/64", "192.0.2.5/32")
	daemon.StartAvahi(t, p.Node, "beside", true)
	peer := daemon.StartAvahi(t, daemon.AddNode(t, network, "peer", "192.0.2.11/24", "2001:db8:0:1::11/64"), "peer", true)
	resolves := func(family, want string) {
		t.Helper()
		p.await("master-0.local to be "+want, func() bool { return peer.Resolves(family, "master-0") == want })
	}
	p.start()
	s := p.awaitState("the name", announced)
	if s.Name != "master-0.local" || s.Interface != "eth0" || job.Addresses(s.Addresses) != "192.0.2.10 2001:db8:0:1::10" {
		t.Errorf("state %+v", s)
	}
	resolves("-4", "192.0.2.10")
	resolves("-6", "2001:db8:0:1::10")
	if errOut, code := p.probe(); code != command.OK || errOut != "" {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	p.awaitState("avahi's host", finds("peer", "192.0.2.11", "2001:db8:0:1::11"))

	p.ip("address", "flush", "dev", "eth0", "scope", "global")
	p.address("192.0.2.77/24", "2001:db8:0:1::10/64")
	resolves("-4", "192.0.2.77")
	p.ip("link", "add", "br-ex", "type", "bridge")
	p.ip("link", "set", "eth0", "master", "br-ex")
	p.ip("address", "flush", "dev", "eth0", "scope", "global")
	p.ip("link", "set", "br-ex", "up")
	p.ip("address", "add", "192.0.2.78/24", "dev", "br-ex")
	resolves("-4", "192.0.2.78")
	p.awaitState("the bridge", func(s state.MDNS) bool { return s.Announced && s.Interface == "br-ex" })
	if errOut, code := p.probe(); code != command.OK || errOut != "" {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	p.awaitState("avahi's host", finds("peer", "192.0.2.11", "2001:db8:0:1::11"))

	testkit.Equal(t, command.OK, p.stop())
	p.await("goodbye", func() bool { return !strings.Contains(peer.Browses(), ";master-0;") })
	resolves("-4", "")
	if errOut, code := p.probe(); code != command.Finding || !strings.Contains(errOut, "does not run") {
		t.Errorf("liveness probe without a running agent: %d: %s", code, errOut)
	}
}

// Two nodes whose names differ after the first period only, or have the same name by mistake:
// the second one reports the holder of the name, and a restart does not help until the name is
// free.
func TestMDNSConflict(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	network := daemon.NewNetwork(t)
	first := newPublisher(t, network, "master-0.a.example.com", "192.0.2.10/24")
	second := newPublisher(t, network, "master-0.b.example.com", "192.0.2.11/24")
	first.start()
	first.awaitState("the name", announced)
	second.start()
	s := second.awaitState("the conflict", func(s state.MDNS) bool { return s.Conflict != nil })
	if s.Announced || !s.Conflict.From.IsValid() || !strings.HasSuffix(s.Conflict.Theirs, " A 192.0.2.10") || len(s.Hosts) != 0 {
		t.Errorf("state %+v, conflict %+v", s, s.Conflict)
	}
	if errOut, code := second.probe(); code != command.OK || !strings.Contains(errOut, "is taken on this link") {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	var out, errOut strings.Builder
	code := agentcli.Run(t.Context(), []string{"status", "--root", second.Path("/")}, &out, &errOut)
	if code != command.OK || !strings.Contains(out.String(), "not announced") || !strings.Contains(out.String(), " A 192.0.2.10") {
		t.Errorf("status: %d: %s%s", code, &out, &errOut)
	}
	second.await("the log of it", func() bool { return strings.Contains(second.output(), "is taken on this link") })
	if n := strings.Count(second.output(), "is taken on this link"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, second.output())
	}
	testkit.Equal(t, command.OK, first.stop())
	second.awaitState("the name to be free", func(s state.MDNS) bool { return s.Announced && s.Conflict == nil })
}

// cluster.yaml may appear and change at any time.
func TestMDNSFollowsTheCluster(t *testing.T) {
	p := newPublisher(t, daemon.NewNetwork(t), "master-0", "192.0.2.10/24", "198.51.100.10/24")
	data, err := p.Read(v1alpha1.ClusterConfigPath)
	testkit.Must(t, err)
	cluster := string(data)
	p.put(v1alpha1.ClusterConfigPath, "nonsense: [")
	p.start()
	p.awaitState("the problem", func(s state.MDNS) bool { return s.Problem != "" && !s.Announced })
	if errOut, code := p.probe(); code != command.OK || !strings.Contains(errOut, "not published") {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	p.put(v1alpha1.ClusterConfigPath, cluster)
	has := func(want string) func(state.MDNS) bool {
		return func(s state.MDNS) bool {
			return s.Announced && job.Addresses(s.Addresses) == want && s.Problem == ""
		}
	}
	p.awaitState("the address", has("192.0.2.10"))
	p.put(v1alpha1.ClusterConfigPath, strings.ReplaceAll(cluster, "192.0.2.", "198.51.100."))
	p.awaitState("the address in the other network", has("198.51.100.10"))
}

// Before the API is up, CoreDNS takes the neighbours from mDNS; afterwards from the API.
func TestCoreDNSKnowsNeighboursBeforeTheAPI(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	network := daemon.NewNetwork(t)
	near := newPublisher(t, network, "master-0", "192.0.2.10/24", "2001:db8:0:1::10/64")
	far := newPublisher(t, network, "master-1.dual.example.com", "192.0.2.11/24", "2001:db8:0:1::11/64")
	stranger := daemon.AddNode(t, network, "stranger", "198.51.100.9/24")
	daemon.StartAvahi(t, stranger, "stranger", false)
	r := resolver{newContainer(near.node, pod.CoreDNS, pod.CoreDNS, readNodes)}
	for _, s := range []*service{near.service, far.service, r.service} {
		s.start()
	}
	answers := func(name, want string) {
		t.Helper()
		r.answers("192.0.2.10", name, dns.TypeA, want)
	}
	answers("master-1.dual.example.com", "192.0.2.11")
	answers("master-1", "192.0.2.11")
	r.answers("192.0.2.10", "master-1", dns.TypeAAAA, "2001:db8:0:1::11")
	near.awaitState("the stranger", finds("stranger", "198.51.100.9"))
	s := r.awaitState("the name", func(s state.CoreDNS) bool { return strings.Join(s.MDNS, " ") == "master-1" })
	if got := r.asked("192.0.2.10", "stranger", dns.TypeA); got == "198.51.100.9" {
		t.Error("a host outside the machine networks is a node")
	}

	far.ip("address", "flush", "dev", "eth0", "scope", "global")
	far.address("192.0.2.12/24")
	answers("master-1", "192.0.2.12")
	before := r.asked("192.0.2.10", "master-9", dns.TypeA)
	near.kill() // its state counts while it runs
	answers("master-1", before)
	near.start()
	answers("master-1", "192.0.2.12")

	// The API's list has another address of master-1, and then none.
	r.nodes("master-0 192.0.2.10", "master-1 192.0.2.71")
	answers("master-1", "192.0.2.71")
	r.nodes("master-0 192.0.2.10", "master-2 192.0.2.13")
	answers("master-2", "192.0.2.13")
	answers("master-1", before)
	now := r.awaitState("no name from mDNS", func(s state.CoreDNS) bool { return len(s.MDNS) == 0 })
	if now.Reloads != s.Reloads {
		t.Errorf("%d reloads for names of nodes", now.Reloads-s.Reloads)
	}
}

// Without a list of nodes, and with a recorded one.
func TestCoreDNSKeptListWinsOverMDNS(t *testing.T) {
	network := daemon.NewNetwork(t)
	near := newPublisher(t, network, "master-0", "192.0.2.10/24")
	far := newPublisher(t, network, "master-1", "192.0.2.11/24")
	r := resolver{newContainer(near.node, pod.CoreDNS, pod.CoreDNS)}
	for _, s := range []*service{near.service, far.service, r.service} {
		s.start()
	}
	r.answers("192.0.2.10", "master-1", dns.TypeA, "192.0.2.11")
	testkit.Equal(t, command.OK, r.stop())
	r.put(filepath.Join(filepath.Dir(v1alpha1.Corefile), ".vipgen-nodes.json"),
		`{"version":1,"cluster":"dual","nodes":[{"name":"master-2","addresses":["192.0.2.12"]}]}`)
	r.start()
	r.answers("192.0.2.10", "master-2", dns.TypeA, "192.0.2.12")
	near.awaitState("the neighbour", finds("master-1", "192.0.2.11"))
	if got := r.asked("192.0.2.10", "master-1", dns.TypeA); got == "192.0.2.11" {
		t.Error("mDNS counts although a list of nodes is known")
	}
}

// Hard case 25, with the pod's few privileges, from its first moment.
func TestHardCase25MDNSWithoutIPv6(t *testing.T) {
	p := newPublisher(t, daemon.NewNetwork(t), "master-0", "192.0.2.10/24", "2001:db8:0:1::10/64")
	p.sysctl("net/ipv6/conf/all/disable_ipv6", "1")
	p.start()
	s := p.awaitState("the name", announced)
	testkit.Equal(testkit.In(t, s), "192.0.2.10", job.Addresses(s.Addresses))
	if errOut, code := p.probe(); code != command.OK || errOut != "" {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
}

// The probe of a stuck agent fails within kubelet's time limit.
func TestMDNSProbeOfAStuckAgent(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	p := newPublisher(t, daemon.NewNetwork(t), "master-0", "2001:db8:0:1::10/64")
	p.start()
	p.awaitState("the name", announced)
	if errOut, code := p.probe(); code != command.OK || errOut != "" {
		t.Errorf("liveness probe over IPv6: %d: %s", code, errOut)
	}
	p.signalInit(syscall.SIGSTOP)
	p.await("a probe that gets no answer", func() bool {
		errOut, code := p.probe()
		return code == command.Finding && strings.Contains(errOut, "the mdns job does not answer")
	})
	p.signalInit(syscall.SIGCONT)
	p.await("a probe that gets its answer", func() bool { _, code := p.probe(); return code == command.OK })
}
