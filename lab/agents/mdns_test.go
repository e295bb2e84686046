package agents

import (
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/job"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// publisher is a node with the mdns pod.
type publisher = jobService[state.MDNS]

func newPublisher(t *testing.T, network *netns.Network, name string, addresses ...string) publisher {
	t.Helper()
	return publisher{newContainer(nodeIn(t, network, name, addresses...), manifest.MDNS, manifest.MDNS)}
}

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

// Before the API is up, CoreDNS takes the neighbours from mDNS; afterwards from the API.
func TestCoreDNSKnowsNeighboursBeforeTheAPI(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	network := daemon.NewNetwork(t)
	near := newPublisher(t, network, "master-0", "192.0.2.10/24", "2001:db8:0:1::10/64")
	far := newPublisher(t, network, "master-1.dual.example.com", "192.0.2.11/24", "2001:db8:0:1::11/64")
	stranger := daemon.AddNode(t, network, "stranger", "198.51.100.9/24")
	daemon.StartAvahi(t, stranger, "stranger", false)
	r := resolver{jobService[state.CoreDNS]{newContainer(near.node, manifest.CoreDNS, manifest.CoreDNS, readNodes)}}
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
	testkit.Equal(testkit.In(t, "reloads for names of nodes"), s.Reloads, now.Reloads)
}
