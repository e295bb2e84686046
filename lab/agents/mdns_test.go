package agents

import (
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
)

// publisher is a node with the mdns pod.
type publisher = jobService[state.MDNS]

func newPublisher(t *testing.T, network *netns.Network, name string, addresses ...string) publisher {
	t.Helper()
	return publisher{newContainer(nodeIn(t, network, name, addresses...), pod.MDNS, pod.MDNS)}
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
	r := resolver{jobService[state.CoreDNS]{newContainer(near.node, pod.CoreDNS, pod.CoreDNS, readNodes)}}
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

	testkit.Run(t, far.Command(t.Context(), "ip", "address", "flush", "dev", "eth0", "scope", "global"))
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

// The probe of a stuck agent fails within kubelet's time limit.
func TestMDNSProbeOfAStuckAgent(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	p := newPublisher(t, daemon.NewNetwork(t), "master-0", "2001:db8:0:1::10/64")
	p.start()
	p.awaitState("the name", announced)
	p.alive()
	p.signalInit(syscall.SIGSTOP)
	p.await("a probe that gets no answer", func() bool {
		errOut, code := p.probe()
		return code == command.Finding && strings.Contains(errOut, "the mdns job does not answer")
	})
	p.signalInit(syscall.SIGCONT)
	p.await("a probe that gets its answer", func() bool { _, code := p.probe(); return code == command.OK })
}
