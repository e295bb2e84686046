package nodes

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/internal/testkit"
)

func testRecords() []*record {
	return []*record{
		{Name: "master-0", Addresses: testkit.Addrs("192.0.2.10"), Host: testkit.Addrs("192.0.2.10", "2001:db8::10"),
			Labels: labels{{"example.com/rack", "r1"}, {"node-role.kubernetes.io/master", ""}},
			Update: nodelist.Update{CurrentConfig: "rendered-master-1", DesiredConfig: "rendered-master-1", State: "Done", KubeletVersion: "v1.34.2"}},
		{Name: "worker-0.example.com", Addresses: testkit.Addrs("2001:db8::20")},
	}
}

func TestStateRefused(t *testing.T) {
	for name, in := range map[string]string{
		"empty":     ``,
		"cut short": `{"version":1,"cluster":"demo","nodes":[`,
		"version":   `{"version":2,"cluster":"demo","nodes":[]}`,
		"cluster":   `{"version":1,"cluster":"other","nodes":[]}`,
		"more":      `{"version":1,"cluster":"demo","nodes":[]}{}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeState([]byte(in), "demo")
			testkit.Fails(t, err, "")
		})
	}
	t.Run("size", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "nodes.json")
		testkit.Must(t, os.WriteFile(path, bytes.Repeat([]byte(" "), maxStateBytes+1), 0o600))
		if _, err := readState(path, "demo"); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("error %v", err)
		}
	})
}

// Invalid entries of the file are skipped, and only these (hard case 37).
func TestHardCase37State(t *testing.T) {
	good := record{Name: "z", Addresses: testkit.Addrs("192.0.2.11")}
	plain := &record{Name: "a"}
	for name, c := range map[string]struct {
		in   string // added before the good node
		want *record
	}{
		"null":            {`null`, nil},
		"no object":       {`7`, nil},
		"no name":         {`{"addresses":[]}`, nil},
		"name":            {`{"name":"a b","addresses":[]}`, nil},
		"twice":           {`{"name":"a"},{"name":"a","addresses":["192.0.2.1"]}`, plain},
		"order":           {`{"name":"a"},{"name":"B"}`, plain},
		"no address":      {`{"name":"a","addresses":["x"]}`, nil},
		"zone":            {`{"name":"a","addresses":["2001:db8::1%eth0"]}`, plain},
		"loopback":        {`{"name":"a","addresses":[],"host":["127.0.0.1"]}`, plain},
		"host order":      {`{"name":"a","host":["192.0.2.2","192.0.2.1"]}`, &record{Name: "a", Host: testkit.Addrs("192.0.2.1", "192.0.2.2")}},
		"label":           {`{"name":"a","labels":{"a b":"","c":"d"}}`, &record{Name: "a", Labels: labels{{"c", "d"}}}},
		"label's value":   {`{"name":"a","labels":{"a":"}\n"}}`, plain},
		"update's value":  {`{"name":"a","update":{"state":"a\nb","kubeletVersion":"v1"}}`, &record{Name: "a", Update: nodelist.Update{KubeletVersion: "v1"}}},
		"a field to come": {`{"name":"a","x":1}`, plain},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeState([]byte(`{"version":1,"cluster":"demo","nodes":[`+c.in+`,{"name":"z","addresses":["192.0.2.11"]}]}`), "demo")
			want := []*record{&good}
			if c.want != nil {
				want = []*record{c.want, &good}
			}
			if !slices.EqualFunc(got.Nodes, want, func(a, b *record) bool { x := *a; x.invalid = nil; return x.equal(b) }) {
				t.Errorf("%d nodes: %s", len(got.Nodes), cmp.Diff(want, got.Nodes, compareAddrs))
			}
			if said := err != nil; said == (name == "host order" || name == "a field to come") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("bootstrap", func(t *testing.T) {
		got, err := decodeState([]byte(`{"version":1,"cluster":"demo","bootstrap":{"address":"127.0.0.1"},"nodes":[{"name":"z"}]}`), "demo")
		if err == nil || got.Bootstrap.Address.IsValid() || len(got.Nodes) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Where space is short, the largest nodes are left out.
func TestHardCase37StateSize(t *testing.T) {
	large := &record{Name: "b"}
	for i := range maxNodeAddresses {
		large.Addresses = append(large.Addresses, netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}))
	}
	s := state{Cluster: "demo", Nodes: []*record{{Name: "a"}, large, {Name: "c"}}}
	data, err := s.encode(400)
	if err != nil || len(data) > 400 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	got, err := decodeState(data, "demo")
	if err != nil || len(got.Nodes) != 2 || got.Nodes[0].Name != "a" || got.Nodes[1].Name != "c" {
		t.Errorf("%+v, %v", got.Nodes, err)
	}
}

// FuzzDecodeState checks that accepted states are valid and encode to the same bytes.
func FuzzDecodeState(f *testing.F) {
	data, err := state{Cluster: "demo", Nodes: testRecords()}.encode(maxStateBytes)
	testkit.Must(f, err)
	f.Add(data)
	f.Add([]byte(`{"version":1,"cluster":"demo","nodes":[{"name":"a","addresses":null,"labels":{}}]}`))
	f.Add([]byte(`{"version":1,"cluster":"demo","bootstrap":{"gone":true},"nodes":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		known, err := decodeState(in, "demo")
		if err != nil && known.Nodes == nil {
			return
		}
		out, err := known.encode(maxStateBytes)
		testkit.Must(t, err)
		again, err := decodeState(out, "demo")
		testkit.Must(testkit.In(t, out), err)
		testkit.Equal(testkit.In(t, "bootstrap"), known.Bootstrap, again.Bootstrap)
		for i := range known.Nodes {
			known.Nodes[i].invalid = nil // it was logged, and is not stored
			if !known.Nodes[i].equal(again.Nodes[i]) {
				t.Errorf("node %d: %+v, then %+v", i, known.Nodes[i], again.Nodes[i])
			}
		}
		newSnapshot(known.Nodes, "a", testSpec(6443), true, known.Bootstrap)
	})
}

// The recorded nodes are the same bytes as those of the previous version, so that an agent of
// either version that starts without an API server has them.
func TestPreviousVersion(t *testing.T) {
	text := testkit.Previous(t, "node/etc/keepalived/.vipgen-nodes.json")
	s, err := decodeState(text, "demo.example.com")
	if err != nil || len(s.Nodes) != 3 || !s.Bootstrap.Gone {
		t.Fatalf("%+v, error %v", s, err)
	}
	if now, err := s.encode(maxStateBytes); err != nil || string(now) != string(text) {
		t.Errorf("written as %s, before %s, error %v", now, text, err)
	}
}
