package v1alpha1

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestPeersOf(t *testing.T) {
	b := BGP{LocalASN: 64512, Peers: []BGPPeer{
		{Address: netip.MustParseAddr("192.0.2.1"), Nodes: BGPNodes{Subnets: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/26")}}},
		{Address: netip.MustParseAddr("192.0.2.65"), Nodes: BGPNodes{Names: []string{"master-2"}}},
		{Address: netip.MustParseAddr("192.0.2.129"), LocalASN: 64513, Multihop: 2},
	}}
	for name, tt := range map[string]struct {
		address string
		want    []string
	}{
		"master-0":             {"192.0.2.10", []string{"192.0.2.1", "192.0.2.129"}},
		"master-2.example.com": {"198.51.100.10", []string{"192.0.2.65", "192.0.2.129"}},
		"master-20":            {"198.51.100.10", []string{"192.0.2.129"}},
	} {
		var got []string
		for _, p := range b.PeersOf(name, []netip.Addr{netip.MustParseAddr(tt.address)}) {
			got = append(got, p.Address.String())
		}
		testkit.Equal(testkit.In(t, name), tt.want, got)
	}
	shared := b.Peers
	b.Default()
	testkit.Equal(t, true, b.Peers[0].BFD.On())
	testkit.Equal(t, 50*time.Millisecond, time.Duration(b.Peers[0].BFD.Interval))
	testkit.Equal(t, false, b.Peers[2].BFD.On()) // over several hops
	testkit.Equal(t, nil, shared[0].BFD.Enabled) // of other clusters of a fleet
	testkit.Equal(t, uint32(64513), b.Local(&b.Peers[2]))
	testkit.Equal(t, uint32(64512), b.Local(&b.Peers[0]))
}

func TestCommunity(t *testing.T) {
	for text, want := range map[string]uint32{"64512:100": 64512<<16 | 100, "0:0": 0, "65535:65535": 1<<32 - 1} {
		got, ok := Community(text)
		testkit.Equal(testkit.In(t, text), true, ok)
		testkit.Equal(testkit.In(t, text), want, got)
	}
	for _, text := range []string{"", "64512", "64512:", ":1", "65536:1", "1:2:3", "-1:1", "no-export"} {
		if _, ok := Community(text); ok {
			t.Errorf("%q is one", text)
		}
	}
}
