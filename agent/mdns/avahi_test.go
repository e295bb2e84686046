package mdns

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestAvahiResolvesTheNode(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32")
	peer := daemon.StartAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "peer", true)
	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	until(t, "the publisher", publisher.published)

	until(t, "IPv4", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "IPv6", func() bool { return peer.Resolves("-6", "master-0") == "2001:db8::1" })
	until(t, "the service", func() bool { return strings.Contains(peer.Browses(), ";master-0;") })
	resolved := func() string { return peer.Browses("--resolve") }
	until(t, "the service's address", func() bool {
		return strings.Contains(resolved(), ";master-0.local;192.0.2.1;9;")
	})

	took := until(t, "goodbye", func() bool {
		publisher.end(syscall.SIGTERM)
		return !strings.Contains(peer.Browses(), ";master-0;")
	})
	t.Logf("avahi forgot the service %v after SIGTERM", took)
	for _, family := range []string{"-4", "-6"} {
		testkit.Equal(t, "", peer.Resolves(family, "master-0"))
	}
	if !publisher.cmd.ProcessState.Success() {
		t.Errorf("ended with %v", publisher.cmd.ProcessState)
	}
}

func TestHardCase15AvahiFollowsAChangeOfAddress(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	peer := daemon.StartAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "peer", true)
	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	until(t, "IPv4", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "IPv6", func() bool { return peer.Resolves("-6", "master-0") == "2001:db8::1" })

	l.ip(node, "address", "add", "192.0.2.7/24", "dev", "eth0")
	publisher.send(testkit.Addrs("192.0.2.7", "2001:db8::1"))
	until(t, "the new address", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.7" })
	until(t, "IPv6", func() bool { return peer.Resolves("-6", "master-0") == "2001:db8::1" })

	// The address moves to a bridge above the link, as when a network plugin
	// takes over.
	l.ip(node, "link", "add", "br-ex", "type", "bridge")
	l.ip(node, "link", "set", "eth0", "master", "br-ex")
	l.ip(node, "address", "flush", "dev", "eth0", "scope", "global")
	l.ip(node, "link", "set", "br-ex", "up")
	l.ip(node, "address", "add", "192.0.2.8/24", "dev", "br-ex")
	publisher.send(testkit.Addrs("192.0.2.8", "2001:db8::1"))
	until(t, "the new link", func() bool { return publisher.now().Link == "br-ex" && publisher.published() })
	until(t, "the address there", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.8" })
}

func TestAvahiIsResolved(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	other := l.add("peer", "192.0.2.2/24", "2001:db8::2/64")
	peer := daemon.StartAvahi(t, other, "peer", true)
	resolver := l.resolve(node, testkit.Addrs("192.0.2.1"))
	until(t, "avahi's host", func() bool { return resolver.hasHost("peer", testkit.Addrs("192.0.2.2", "2001:db8::2")...) })
	l.ip(other, "address", "del", "192.0.2.2/24", "dev", "eth0")
	l.ip(other, "address", "add", "192.0.2.3/24", "dev", "eth0")
	until(t, "avahi's new address", func() bool { return resolver.hasHost("peer", testkit.Addrs("192.0.2.3", "2001:db8::2")...) })
	peer.Stop()
	until(t, "avahi's goodbye", func() bool { return resolver.hasHost("peer") })
}

func TestConflictWithAvahiIsReported(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64")
	peer := daemon.StartAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "master-0", true)
	until(t, "avahi's own name", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.2" })

	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	until(t, "the conflict", func() bool { return publisher.now().Conflict != nil })
	got := publisher.now()
	t.Log(got.Err)
	if got.Published || got.Conflict.Name != "master-0.local" || !strings.HasPrefix(got.Conflict.Theirs, "master-0.local. 120 IN A") {
		t.Errorf("state %+v", got)
	}
	testkit.Lacks(t, peer.Browses(), ";192.0.2.1;", "master-0-2")
	testkit.Equal(t, "192.0.2.2", peer.Resolves("-4", "master-0"))
	peer.Kill()
	took := until(t, "the name to be free", publisher.published)
	t.Logf("published %v after avahi was killed", took)
}

func TestAvahiGivesWay(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24")
	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1"))
	until(t, "the publisher", publisher.published)
	peer := daemon.StartAvahi(t, l.add("peer", "192.0.2.2/24"), "master-0", true)
	until(t, "avahi's other name", func() bool { return peer.Resolves("-4", "master-0-2") == "192.0.2.2" })
	testkit.Equal(t, "192.0.2.1", peer.Resolves("-4", "master-0"))
	if !publisher.published() || publisher.now().Conflict != nil {
		t.Errorf("state %+v", publisher.now())
	}
}

func TestHardCase25AvahiWithoutIPv6(t *testing.T) {
	l := newLab(t)
	node, other := l.add("node", "192.0.2.1/24"), l.add("peer", "192.0.2.2/24")
	l.withoutIPv6(node)
	peer := daemon.StartAvahi(t, other, "peer", true)
	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	resolver := l.resolve(node, testkit.Addrs("192.0.2.1"))
	until(t, "our name", func() bool { return peer.Resolves("-4", "master-0") == "192.0.2.1" })
	until(t, "avahi's name", func() bool { return resolver.hasHost("peer", testkit.Addrs("192.0.2.2")...) })
	until(t, "the publisher to say so", publisher.published)
	if got := publisher.now(); got.Err != "" || !slices.Equal(got.Addresses, testkit.Addrs("192.0.2.1")) {
		t.Errorf("state %+v", got)
	}
}
