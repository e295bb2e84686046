package neighbours

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// speaks returns an instance on eth0 with the given number of peers.
func speaks(vip, interval string, peers int) keepalived.Instance {
	i := keepalived.Instance{Interface: "eth0", VIP: netip.MustParsePrefix(vip), AdvertInterval: interval}
	a := netip.MustParseAddr("192.0.2.1")
	if i.VIP.Addr().Is6() {
		a = netip.MustParseAddr("2001:db8::1")
	}
	for range peers {
		i.Peers, a = append(i.Peers, a), a.Next()
	}
	return i
}

func TestLimits(t *testing.T) {
	const buffer, v4, v6 = 212992, "198.51.100.5/32", "2001:db8:1::5/128"
	type in = []keepalived.Instance
	elsewhere := speaks(v4, "0.1", 50)
	elsewhere.Interface = "br-ex"
	for _, tt := range []struct {
		name      string
		instances in
		want      []limit
	}{
		{"nothing runs", nil, nil},
		{"a control plane with its bootstrap", in{speaks(v4, "0.1", 3)}, nil},
		{"the classic profile", in{speaks(v4, "1", 20)}, nil},
		{"fifty peers", in{speaks(v4, "0.1", 50)}, []limit{{"eth0", false, 2129}}},
		{"fifty peers, slower", in{speaks(v4, "1", 50)}, []limit{{"eth0", false, 2129}}},
		{"the same peers for two VIPs", in{speaks(v4, "0.1", 2), speaks(v4, "0.1", 2)}, []limit{{"eth0", false, 53248}}},
		{"each family has a socket", in{speaks(v6, "0.1", 10), speaks(v4, "0.1", 20)}, []limit{{"eth0", false, 5324}, {"eth0", true, 10649}}},
		{"each interface has a socket", in{speaks(v4, "0.1", 50), elsewhere}, []limit{{"br-ex", false, 2129}, {"eth0", false, 2129}}},
		{"never less than one advert", in{speaks(v4, "1", 1000)}, []limit{{"eth0", false, 1024}}},
		{"multicast", in{speaks(v4, "0.1", 0)}, nil},
	} {
		testkit.Equal(testkit.In(t, tt.name), tt.want, limits(tt.instances, buffer))
	}
}

// TestQueues sets limits in the kernel and restores the previous ones.
func TestQueues(t *testing.T) {
	node := daemon.AddNode(t, daemon.NewNetwork(t), "node", "192.0.2.1/24")
	testkit.Must(t, node.AddLink("eth1"))
	file := filepath.Join(t.TempDir(), "queues.json")
	are := func() (out []uint32) {
		t.Helper()
		var list []limit
		testkit.Must(t, node.Do(func() (err error) { list, err = readLimits(); return err }))
		for _, q := range []limit{{"eth0", false, 0}, {"eth0", true, 0}, {"eth1", false, 0}} {
			is, ok := find(list, q)
			if !ok {
				t.Fatalf("%+v is not among %+v", q, list)
			}
			out = append(out, is.Bytes)
		}
		return out
	}
	const own = 3000 // chosen by an administrator for eth1
	testkit.Must(t, node.Do(func() error { return limit{"eth1", false, own}.set() }))
	before := are()
	d4, d6 := before[0], before[1]
	for _, tt := range []struct {
		name   string
		wanted []limit
		want   []uint32
		kept   bool
	}{
		{"nothing to do", nil, []uint32{d4, d6, own}, false},
		{"one family", []limit{{"eth0", false, 2000}}, []uint32{2000, d6, own}, true},
		{"tighter, and the other", []limit{{"eth0", false, 1024}, {"eth0", true, 1500}}, []uint32{1024, 1500, own}, true},
		{"not tighter than somebody's own", []limit{{"eth0", false, 1024}, {"eth1", false, 5000}}, []uint32{1024, d6, own}, true},
		{"another interface", []limit{{"eth1", false, 2500}}, []uint32{d4, d6, 2500}, true},
		{"an interface that is not there", []limit{{"eth9", false, 2500}}, []uint32{d4, d6, own}, false},
		{"all of it", []limit{{"eth0", false, 1024}, {"eth1", false, 1024}}, []uint32{1024, d6, 1024}, true},
		{"nothing", nil, []uint32{d4, d6, own}, false},
	} {
		// A new value each time: the previous one is known from the file.
		testkit.Must(testkit.In(t, tt.name), node.Do(func() error { return (&queues{file: file}).apply(tt.wanted) }))
		testkit.Equal(testkit.In(t, tt.name), tt.want, are())
		if _, err := os.Stat(file); (err == nil) != tt.kept {
			t.Errorf("%s: the file: %v", tt.name, err)
		}
	}
	testkit.WriteFile(t, file, []byte("{"))
	err := node.Do(func() error { return (&queues{file: file}).apply([]limit{{"eth0", false, 1024}}) })
	if got := are(); err == nil || got[0] != 1024 {
		t.Errorf("with a file that is worth nothing: %v, queues %d", err, got)
	}
}

// FuzzQueues reads arbitrary lists of previous limits.
func FuzzQueues(f *testing.F) {
	f.Add([]byte(`[{"interface":"eth0","ipv6":true,"bytes":1024}]`))
	f.Add([]byte(`[{"bytes":-1}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		q := queues{file: filepath.Join(t.TempDir(), "file")}
		testkit.WriteFile(t, q.file, data)
		list, err := q.previous()
		if err != nil {
			testkit.Empty(testkit.In(t, err), list)
			return
		}
		testkit.Must(t, q.store(list))
		if again, err := q.previous(); err != nil || !slices.Equal(again, list) {
			t.Errorf("%v is written, and read as %v: %v", list, again, err)
		}
	})
}

// TestPreviousVersion: this version reads and writes the file of the previous one.
func TestPreviousVersion(t *testing.T) {
	q := queues{file: filepath.Join(t.TempDir(), "file")}
	before := testkit.Previous(t, "node/run/vipgen/keepalived/queues.json")
	testkit.WriteFile(t, q.file, before)
	list, err := q.previous()
	if err != nil || len(list) != 2 || list[0].Bytes != 212992 || !list[1].IPv6 {
		t.Fatalf("limits %+v, error %v", list, err)
	}
	testkit.Must(t, os.Remove(q.file))
	testkit.Must(t, q.store(list))
	testkit.Equal(t, string(before), string(testkit.ReadFile(t, q.file)))
}
