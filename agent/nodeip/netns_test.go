package nodeip

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// deadline bounds the wait for events that must happen.
const deadline = time.Minute

// host is a node in a network namespace.
type host struct {
	*netns.Node
	t *testing.T
}

func newHost(t *testing.T, addrs ...string) host {
	t.Helper()
	h := host{daemon.AddNode(t, daemon.NewNetwork(t), "node"), t}
	for _, a := range addrs {
		h.address("eth0", a)
	}
	return h
}

// ip runs iproute2's ip on the node.
func (h host) ip(args ...string) {
	h.t.Helper()
	testkit.Run(h.t, h.Command(context.Background(), "ip", args...))
}

func (h host) address(link, addr string) {
	h.t.Helper()
	testkit.Must(h.t, h.AddAddress(link, netip.MustParsePrefix(addr)))
}

func (h host) link(name string, addrs ...string) {
	h.t.Helper()
	testkit.Must(h.t, h.AddLink(name))
	for _, a := range addrs {
		h.address(name, a)
	}
}

// sysctl sets a value below /proc/sys/net of the node.
func (h host) sysctl(path, value string) {
	h.t.Helper()
	err := h.Do(func() error { return os.WriteFile("/proc/sys/net/"+path, []byte(value), 0) })
	testkit.Must(h.t, err)
}

// snapshot is Read on the node.
func (h host) snapshot() (s Snapshot, err error) {
	err = h.Do(func() (err error) {
		s, err = Read()
		return err
	})
	return s, err
}

func (h host) read() Snapshot {
	h.t.Helper()
	s, err := h.snapshot()
	testkit.Must(h.t, err)
	return s
}

// expect polls until the choice is as expected: links and routes take a moment.
func (h host) expect(vips, machines, want string) Choice {
	h.t.Helper()
	got := ""
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c := Choose(h.read(), cluster(vips, machines), Preference{})
		if got = picked(c); got == want {
			return c
		}
	}
	h.t.Fatalf("chose %s, want %s", got, want)
	return Choice{}
}

func TestHardCase10InNamespaces(t *testing.T) {
	testkit.Live(t)
	const machines = "2001:db8::/64"
	t.Run("tentative, then its own", func(t *testing.T) {
		h := newHost(t)
		h.sysctl("ipv6/conf/eth0/accept_dad", "1")
		h.sysctl("ipv6/conf/eth0/dad_transmits", "600") // ten minutes
		h.ip("address", "add", "2001:db8::10/64", "dev", "eth0")
		h.link("eth1", "2001:db8:1::10/64")
		h.ip("route", "add", "default", "via", "fe80::1", "dev", "eth1")
		h.expect("2001:db8::5", machines, "no IPv6")
		h.ip("address", "delete", "2001:db8::10/64", "dev", "eth0")
		h.address("eth0", "2001:db8::10/64")
		h.expect("2001:db8::5", machines, "2001:db8::10/64 eth0")
	})
	t.Run("deprecated, link-local, OVN's and egress", func(t *testing.T) {
		h := newHost(t, "192.0.2.10/24", "fd69::2/112")
		h.ip("address", "add", "2001:db8::9/64", "dev", "eth0", "preferred_lft", "0", "nodad")
		h.ip("address", "add", "192.0.2.9/25", "dev", "eth0", "label", "eth0ovn")
		h.ip("address", "add", "192.0.2.8/25", "dev", "eth0", "label", "eth0:eip")
		h.expect("192.0.2.5 2001:db8::5", "192.0.2.0/24 "+machines, "192.0.2.10/24 eth0, no IPv6")
		h.address("eth0", "2001:db8::10/128")
		h.ip("route", "add", "2001:db8::/64", "dev", "eth0", "proto", "ra")
		h.expect("192.0.2.5 2001:db8::5", "192.0.2.0/24 "+machines, "192.0.2.10/24 eth0, 2001:db8::10/64 eth0")
	})
}

// TestHardCase04Watch moves the node's address as OVN-Kubernetes and bonds do,
// and expects every step to be reported.
func TestHardCase04Watch(t *testing.T) {
	testkit.Live(t)
	h := newHost(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var changes <-chan struct{}
	err := h.Do(func() (err error) {
		changes, err = Watch(ctx)
		return err
	})
	testkit.Must(t, err)
	for _, s := range []struct {
		name string
		do   func()
		want string
	}{
		{"address added", func() { h.address("eth0", "192.0.2.10/24") }, "192.0.2.10/24 eth0"},
		{"renamed", func() {
			h.ip("link", "set", "eth0", "down")
			h.ip("link", "set", "eth0", "name", "ens192")
			h.ip("link", "set", "ens192", "up")
		}, "192.0.2.10/24 ens192"},
		{"moved to a bridge", func() {
			h.ip("link", "add", "br-ex", "type", "bridge")
			h.ip("link", "set", "ens192", "master", "br-ex")
			h.ip("address", "delete", "192.0.2.10/24", "dev", "ens192")
			h.ip("address", "add", "192.0.2.10/24", "dev", "br-ex")
			h.ip("link", "set", "br-ex", "up")
		}, "192.0.2.10/24 br-ex"},
		{"another address", func() {
			h.ip("address", "add", "192.0.2.11/24", "dev", "br-ex")
			h.ip("address", "delete", "192.0.2.10/24", "dev", "br-ex")
			h.ip("address", "replace", "192.0.2.11/24", "dev", "br-ex")
		}, "192.0.2.11/24 br-ex"},
		{"interface gone", func() { h.ip("link", "delete", "br-ex") }, "no IPv4"},
	} {
		s.do()
		got, end := "", time.After(deadline)
		for got != s.want {
			select {
			case <-changes:
				got = picked(Choose(h.read(), cluster("192.0.2.5", "192.0.2.0/24"), Preference{}))
			case <-end:
				t.Fatalf("%s: chose %s, want %s", s.name, got, s.want)
			}
		}
	}
	stop()
	for end := time.After(deadline); ; {
		select {
		case _, open := <-changes:
			if !open {
				return
			}
		case <-end:
			t.Fatal("the channel was not closed")
		}
	}
}
