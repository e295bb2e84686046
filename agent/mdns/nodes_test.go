package mdns

import (
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestNodesFindEachOther(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	a := l.add("a", "192.0.2.1/24", "2001:db8::1/64")
	b := l.add("b", "192.0.2.2/24", "2001:db8::2/64")
	early := l.resolve(a, testkit.Addrs("192.0.2.1"))
	first := l.publish(a, "master-0", testkit.Addrs("192.0.2.1", "2001:db8::1"))
	second := l.publish(b, "master-1", testkit.Addrs("192.0.2.2"))
	late := l.resolve(b, testkit.Addrs("192.0.2.2"))
	for _, resolver := range []*proc{early, late} {
		until(t, "the first", func() bool { return resolver.hasHost("master-0", testkit.Addrs("192.0.2.1", "2001:db8::1")...) })
		until(t, "the second", func() bool { return resolver.hasHost("master-1", testkit.Addrs("192.0.2.2")...) })
	}

	l.ip(b, "address", "add", "192.0.2.22/24", "dev", "eth0")
	second.send(testkit.Addrs("192.0.2.22"))
	for _, resolver := range []*proc{early, late} {
		until(t, "the other address", func() bool { return resolver.hasHost("master-1", testkit.Addrs("192.0.2.22")...) })
	}
	first.end(syscall.SIGTERM)
	for _, resolver := range []*proc{early, late} {
		until(t, "goodbye", func() bool { return resolver.hasHost("master-0") })
		if !resolver.hasHost("master-1", testkit.Addrs("192.0.2.22")...) {
			t.Error("one's goodbye took the other along")
		}
	}
	for _, p := range []*proc{second, early, late} {
		p.end(syscall.SIGTERM)
	}
	for _, p := range []*proc{first, second, early, late} {
		if !p.cmd.ProcessState.Success() {
			t.Errorf("%v ended with %v", p.cmd.Args, p.cmd.ProcessState)
		}
	}
}

func TestIPv6Alone(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "2001:db8::1/64"), l.add("b", "2001:db8::2/64")
	publisher := l.publish(a, "master-0", testkit.Addrs("2001:db8::1"))
	resolver := l.resolve(b, testkit.Addrs("2001:db8::2"))
	until(t, "the host", func() bool { return resolver.hasHost("master-0", testkit.Addrs("2001:db8::1")...) })
	until(t, "the publisher", publisher.published)
}

func TestSameNameOnTwoNodes(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	first := l.publish(a, "master-0", testkit.Addrs("192.0.2.1"))
	second := l.publish(b, "master-0", testkit.Addrs("192.0.2.2"))
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
	t.Parallel()
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	publisher := l.publish(a, "master-0", testkit.Addrs("192.0.2.1"))
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
	resolver := l.resolve(b, testkit.Addrs("192.0.2.2"))
	until(t, "the host", func() bool { return resolver.hasHost("master-0", testkit.Addrs("192.0.2.1")...) })
}

// A plain resolver is not aware of Multicast DNS (RFC 6762 section 6.7): it sends from any port
// and waits for the answer to its one question.
func TestPlainResolversGetAnswers(t *testing.T) {
	l := newLab(t)
	a, b := l.add("a", "192.0.2.1/24"), l.add("b", "192.0.2.2/24")
	l.ip(b, "route", "add", "224.0.0.0/4", "dev", "eth0")
	publisher := l.publish(a, "master-0", testkit.Addrs("192.0.2.1"))
	until(t, "the publisher", publisher.published)
	var conn net.PacketConn
	err := b.Do(func() (err error) {
		conn, err = net.ListenPacket("udp4", "192.0.2.2:0")
		return err
	})
	testkit.Must(t, err)
	defer conn.Close()
	tests := []struct{ name, kind, want string }{
		{"master-0.local.", "A", "master-0.local. 10 IN A 192.0.2.1"},
		{"_workstation._tcp.local.", "PTR", "_workstation._tcp.local. 10 IN PTR master-0._workstation._tcp.local."},
		{"master-0._workstation._tcp.local.", "SRV", "master-0._workstation._tcp.local. 10 IN SRV 0 0 9 master-0.local."},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.kind, func(t *testing.T) {
			query := new(dns.Msg).SetQuestion(tt.name, dns.StringToType[tt.kind])
			until(t, "an answer", func() bool {
				response := ask(t, conn, query)
				return response != nil && response.Id == query.Id && slices.Equal(response.Question, query.Question) &&
					slices.Equal(lines(response.Answer), []string{tt.want})
			})
		})
	}
}

// ask returns the next response that arrives within a second.
func ask(t *testing.T, conn net.PacketConn, query *dns.Msg) *dns.Msg {
	t.Helper()
	data, err := query.Pack()
	testkit.Must(t, err)
	if _, err := conn.WriteTo(data, net.UDPAddrFromAddrPort(netip.AddrPortFrom(group4, port))); err != nil {
		t.Fatal(err)
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	buf := make([]byte, maxMessage)
	n, _, err := conn.ReadFrom(buf)
	if err != nil {
		return nil
	}
	msg := new(dns.Msg)
	testkit.Must(t, msg.Unpack(buf[:n]))
	return msg
}
