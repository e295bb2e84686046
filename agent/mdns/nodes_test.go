package mdns

import (
	"context"
	"strings"
	"syscall"
	"testing"
)

func TestNodesFindEachOther(t *testing.T) {
	l := newLab(t)
	a := l.add("a", "192.0.2.1/24", "2001:db8::1/64")
	b := l.add("b", "192.0.2.2/24", "2001:db8::2/64")
	early := l.resolve(a, addrs("192.0.2.1"))
	first := l.publish(a, "master-0", addrs("192.0.2.1", "2001:db8::1"))
	second := l.publish(b, "master-1", addrs("192.0.2.2"))
	late := l.resolve(b, addrs("192.0.2.2"))
	for _, resolver := range []*proc{early, late} {
		until(t, "the first", func() bool { return resolver.knows("master-0", addrs("192.0.2.1", "2001:db8::1")...) })
		until(t, "the second", func() bool { return resolver.knows("master-1", addrs("192.0.2.2")...) })
	}

	l.ip(b, "address", "add", "192.0.2.22/24", "dev", "eth0")
	second.tell(addrs("192.0.2.22"))
	for _, resolver := range []*proc{early, late} {
		until(t, "the other address", func() bool { return resolver.knows("master-1", addrs("192.0.2.22")...) })
	}
	first.end(syscall.SIGTERM)
	for _, resolver := range []*proc{early, late} {
		until(t, "goodbye", func() bool { return resolver.knows("master-0") })
		if !resolver.knows("master-1", addrs("192.0.2.22")...) {
			t.Error("one's goodbye took the other along")
		}
	}
}

func TestIPv6Alone(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "2001:db8::1/64"), l.add("b", "2001:db8::2/64")
	publisher := l.publish(a, "master-0", addrs("2001:db8::1"))
	resolver := l.resolve(b, addrs("2001:db8::2"))
	until(t, "the host", func() bool { return resolver.knows("master-0", addrs("2001:db8::1")...) })
	until(t, "the publisher", publisher.published)
}

func TestSameNameOnTwoNodes(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	first := l.publish(a, "master-0", addrs("192.0.2.1"))
	second := l.publish(b, "master-0", addrs("192.0.2.2"))
	until(t, "one of them to have it", func() bool {
		return first.published() && second.now().Conflict != nil || second.published() && first.now().Conflict != nil
	})
	winner, loser := first, second
	if second.published() {
		winner, loser = second, first
	}
	winner.end(syscall.SIGTERM)
	until(t, "the other to have it", loser.published)
}

func TestHardCase04LinkChanges(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	publisher := l.publish(a, "master-0", addrs("192.0.2.1"))
	until(t, "the publisher", publisher.published)
	steps := []struct {
		name string
		do   [][]string
		link string // "" where the name cannot be published
	}{
		{"down", [][]string{{"link", "set", "eth0", "down"}}, ""},
		{"up again", [][]string{{"link", "set", "eth0", "up"}}, "eth0"},
		{"address gone", [][]string{{"address", "del", "192.0.2.1/24", "dev", "eth0"}}, ""},
		{"renamed", [][]string{{"link", "set", "eth0", "down"}, {"link", "set", "eth0", "name", "ens3"},
			{"link", "set", "ens3", "up"}, {"address", "add", "192.0.2.1/24", "dev", "ens3"}}, "ens3"},
	}
	for _, step := range steps {
		for _, args := range step.do {
			l.ip(a, args...)
		}
		until(t, step.name, func() bool {
			now := publisher.now()
			return now.Link == step.link && now.Published == (step.link != "")
		})
	}
	resolver := l.resolve(b, addrs("192.0.2.2"))
	until(t, "the host", func() bool { return resolver.knows("master-0", addrs("192.0.2.1")...) })
}

// dig knows nothing of Multicast DNS (RFC 6762 section 6.7).
func TestPlainResolversGetAnswers(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	l.ip(b, "route", "add", "224.0.0.0/4", "dev", "eth0")
	publisher := l.publish(a, "master-0", addrs("192.0.2.1"))
	until(t, "the publisher", publisher.published)
	tests := []struct{ name, kind, want string }{
		{"master-0.local", "A", "192.0.2.1"},
		{"MASTER-0.local", "A", "192.0.2.1"},
		{"_workstation._tcp.local", "PTR", "master-0._workstation._tcp.local."},
		{"master-0._workstation._tcp.local", "SRV", "0 0 9 master-0.local."},
		{"master-0._workstation._tcp.local", "TXT", `""`},
		{"_services._dns-sd._udp.local", "PTR", "_workstation._tcp.local."},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.kind, func(t *testing.T) {
			until(t, "an answer", func() bool {
				out, _ := b.Command(context.Background(), "dig", "+time=1", "+tries=1", "+short", "-p", "5353",
					"@224.0.0.251", tt.name, tt.kind).Output()
				return strings.TrimSpace(string(out)) == tt.want
			})
		})
	}
}
