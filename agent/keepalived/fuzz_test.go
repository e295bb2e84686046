package keepalived

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// written is a file with that content.
func written(t *testing.T, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// FuzzSettings reads any settings that a node may find on its disk.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(fastUnicast))
	f.Add([]byte(classicKept))
	f.Add([]byte(`{"profile":"fast","mode":"unicast","version":2,"advertIntervalMS":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := written(t, data)
		v := readSettings(path)
		if v == nil {
			return
		}
		if v.AdvertIntervalMS <= 0 || v.Version != 2 && v.Version != 3 {
			t.Fatalf("%+v", *v)
		}
		if err := writeSettings(path, *v); err != nil {
			t.Fatal(err)
		}
		if again := readSettings(path); again == nil || *again != *v {
			t.Errorf("%+v is written, and read as %+v", *v, again)
		}
	})
}

// FuzzPlaced reads any list of the VIPs that an earlier keepalived may have left.
func FuzzPlaced(f *testing.F) {
	f.Add([]byte(`["192.0.2.5","2001:db8::5"]`))
	f.Add([]byte(`["192.0.2.5","","fe80::1%eth0",7]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := recordedVIPs{}
		p.open(written(t, data))
		for _, a := range p.with(nil) {
			if !a.IsValid() || a.Zone() != "" {
				t.Errorf("%q", a)
			}
		}
		vip := netip.MustParseAddr("192.0.2.5")
		if err := p.note([]netip.Addr{vip}, func(netip.Addr) bool { return true }); err != nil {
			t.Fatal(err)
		}
		var again recordedVIPs
		if err := again.open(p.path); err != nil || !slices.Equal(again.with(nil), []netip.Addr{vip}) {
			t.Errorf("%v, %v", again.vips, err)
		}
	})
}

// FuzzQueues reads any list of what was set before.
func FuzzQueues(f *testing.F) {
	f.Add([]byte(`[{"interface":"eth0","ipv6":true,"bytes":1024}]`))
	f.Add([]byte(`[{"bytes":-1}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q := queues{file: written(t, data)}
		list, err := q.earlier()
		if err != nil {
			if len(list) > 0 {
				t.Errorf("%v, %v", list, err)
			}
			return
		}
		if err := q.remember(list); err != nil {
			t.Fatal(err)
		}
		if again, err := q.earlier(); err != nil || !slices.Equal(again, list) {
			t.Errorf("%v is written, and read as %v: %v", list, again, err)
		}
	})
}

// FuzzHeard reads any packet of the protocol from any host.
func FuzzHeard(f *testing.F) {
	vip := netip.MustParseAddr("192.0.2.5")
	f.Add([]byte{0x31, 7, 100, 1, 0, 4, 0, 0, 192, 0, 2, 5}, 255)
	f.Add([]byte{0x21, 7, 100, 255, 1, 1}, 64)
	i := keepalived.Instance{
		Version: 3, RouterID: 7, AdvertInterval: "0.04", VIP: netip.PrefixFrom(vip, 32),
		Peers: []netip.Addr{netip.MustParseAddr("192.0.2.11")}, FullTTL: true, OnLink: true, AllKnown: true,
	}
	f.Fuzz(func(t *testing.T, data []byte, ttl int) {
		for _, from := range []string{"192.0.2.11", "192.0.2.66", "2001:db8::11"} {
			source := netip.MustParseAddr(from)
			a, err := vrrp.ParseAdvert(source, data)
			if err != nil {
				continue
			}
			if accepts(&i, nil, listener.Received{Advert: *a, TTL: ttl}) && (from != "192.0.2.11" || ttl != 255 || data[0] != 0x31 || data[1] != 7) {
				t.Errorf("%x from %s with TTL %d is taken", data, from, ttl)
			}
		}
	})
}

// FuzzClaim reads any packet of the link.
func FuzzClaim(f *testing.F) {
	f.Add([]byte{0, 1, 8, 0, 6, 4, 0, 2, 1, 2, 3, 4, 5, 6, 192, 0, 2, 5, 0, 0, 0, 0, 0, 0, 192, 0, 2, 5})
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := claim(data)
		if a.IsValid() && len(data) >= arpLength {
			announcement(data)
		}
		if a.IsValid() && len(data) < arpLength {
			t.Errorf("%x says %v", data, a)
		}
	})
}
