package mdns

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestHardCase04LinkChanges(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	publisher := l.publish(a, "master-0", testkit.Addrs("192.0.2.1"))
	testkit.Await(t, "the publisher", publisher.published)
	for _, step := range []struct {
		name string
		do   [][]string
		link string // "" where the name cannot be published
	}{
		{"down", [][]string{{"link", "set", "eth0", "down"}}, ""},
		{"up again", [][]string{{"link", "set", "eth0", "up"}}, "eth0"},
		{"address gone", [][]string{{"address", "del", "192.0.2.1/24", "dev", "eth0"}}, ""},
		{"renamed", [][]string{{"link", "set", "eth0", "down"}, {"link", "set", "eth0", "name", "ens3"},
			{"link", "set", "ens3", "up"}, {"address", "add", "192.0.2.1/24", "dev", "ens3"}}, "ens3"},
	} {
		for _, args := range step.do {
			l.ip(a, args...)
		}
		testkit.Await(t, step.name, func() bool {
			now := publisher.now()
			return now.Link == step.link && now.Published == (step.link != "")
		})
	}
	resolver := l.resolve(b, testkit.Addrs("192.0.2.2"))
	testkit.Await(t, "the host", func() bool { return resolver.hasHost("master-0", testkit.Addrs("192.0.2.1")...) })
}

// Two nodes have the same name by mistake: the second one gets it when the first one ends.
func TestSameNameOnTwoNodes(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	first := l.publish(l.add("a", "192.0.2.1/24"), "master-0", testkit.Addrs("192.0.2.1"))
	testkit.Await(t, "the first one", first.published)
	second := l.publish(l.add("b", "192.0.2.2/24"), "master-0", testkit.Addrs("192.0.2.2"))
	var conflict *conflictError
	testkit.Await(t, "the conflict", func() bool { return errors.As(second.now().Err, &conflict) })
	if conflict.Name != "master-0.local" || !strings.HasPrefix(conflict.Theirs, "master-0.local. 120 IN A 192.0.2.1") || !first.published() {
		t.Errorf("%+v, the first one %+v", conflict, first.now())
	}
	first.end()
	testkit.Await(t, "the name to be free", second.published)
}

func TestHardCase25WithoutIPv6(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	testkit.Must(t, a.Do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) }))
	publisher := l.publish(a, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	resolver := l.resolve(b, testkit.Addrs("192.0.2.2"))
	testkit.Await(t, "the host", func() bool { return resolver.hasHost("master-0", testkit.Addrs("192.0.2.1")...) })
	testkit.Await(t, "the publisher", publisher.published)
	testkit.Equal(t, nil, publisher.now().Err)
}

// Hard case 15: avahi on another node follows the name, also to another link, and is found, while
// yet another avahi runs next to the publisher.
func TestHardCase15Avahi(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.1/24", "2001:db8::1/64", "192.0.2.10/32")
	daemon.StartAvahi(t, node, "beside", true)
	peer := daemon.StartAvahi(t, l.add("peer", "192.0.2.2/24", "2001:db8::2/64"), "peer", true)
	publisher := l.publish(node, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	resolver := l.resolve(node, testkit.Addrs("192.0.2.1"))
	resolves := func(family, want string) {
		t.Helper()
		testkit.Await(t, "master-0.local to be "+want, func() bool { return peer.Resolves(family, "master-0") == want })
	}
	resolves("-4", "192.0.2.1")
	resolves("-6", "2001:db8::1")
	testkit.Await(t, "the service", func() bool { return strings.Contains(peer.Browses("--resolve"), ";master-0.local;192.0.2.1;9;") })
	testkit.Await(t, "avahi's host", func() bool { return resolver.hasHost("peer", testkit.Addrs("192.0.2.2", "2001:db8::2")...) })

	l.ip(node, "link", "add", "br-ex", "type", "bridge")
	l.ip(node, "link", "set", "eth0", "master", "br-ex")
	l.ip(node, "address", "flush", "dev", "eth0", "scope", "global")
	l.ip(node, "link", "set", "br-ex", "up")
	l.ip(node, "address", "add", "192.0.2.8/24", "dev", "br-ex")
	publisher.addresses <- testkit.Addrs("192.0.2.8", "2001:db8::1")
	resolves("-4", "192.0.2.8")
	testkit.Equal(t, "br-ex", publisher.now().Link)
	publisher.end()
	testkit.Await(t, "goodbye", func() bool { return !strings.Contains(peer.Browses(), ";master-0;") })
	resolves("-4", "")
}
