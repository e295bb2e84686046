package nodes

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testRecords() []*record {
	return []*record{
		{Name: "master-0", Addresses: addrs("192.0.2.10"), Host: addrs("192.0.2.10", "2001:db8::10"),
			Labels: labels{{"example.com/rack", "r1"}, {"node-role.kubernetes.io/master", ""}},
			Update: Update{CurrentConfig: "rendered-master-1", DesiredConfig: "rendered-master-1", State: "Done", KubeletVersion: "v1.34.2"}},
		{Name: "worker-0.example.com", Addresses: addrs("2001:db8::20")},
	}
}

func TestState(t *testing.T) {
	want := state{Version: stateVersion, Cluster: "demo", Nodes: testRecords(), Bootstrap: Bootstrap{Address: addrs("192.0.2.9")[0]}}
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nodes.json")
	if got, err := readState(path, "demo"); got.Nodes != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readState(path, "demo")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, compareAddrs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStateRefused(t *testing.T) {
	good := `{"version":1,"cluster":"demo","nodes":[%s]}`
	for name, in := range map[string]string{
		"empty":          ``,
		"cut short":      `{"version":1,"cluster":"demo","nodes":[`,
		"version":        `{"version":2,"cluster":"demo","nodes":[]}`,
		"cluster":        `{"version":1,"cluster":"other","nodes":[]}`,
		"unknown field":  `{"version":1,"cluster":"demo","nodes":[],"x":1}`,
		"more":           `{"version":1,"cluster":"demo","nodes":[]}{}`,
		"null node":      fmt.Sprintf(good, `null`),
		"no name":        fmt.Sprintf(good, `{"addresses":[]}`),
		"name":           fmt.Sprintf(good, `{"name":"a b","addresses":[]}`),
		"order":          fmt.Sprintf(good, `{"name":"b","addresses":[]},{"name":"a","addresses":[]}`),
		"twice":          fmt.Sprintf(good, `{"name":"a","addresses":[]},{"name":"a","addresses":[]}`),
		"address":        fmt.Sprintf(good, `{"name":"a","addresses":["x"]}`),
		"zone":           fmt.Sprintf(good, `{"name":"a","addresses":["fe80::1%eth0"]}`),
		"loopback":       fmt.Sprintf(good, `{"name":"a","addresses":[],"host":["127.0.0.1"]}`),
		"host order":     fmt.Sprintf(good, `{"name":"a","addresses":[],"host":["192.0.2.2","192.0.2.1"]}`),
		"label":          fmt.Sprintf(good, `{"name":"a","addresses":[],"labels":{"a b":""}}`),
		"label's value":  fmt.Sprintf(good, `{"name":"a","addresses":[],"labels":{"a":"}\n"}}`),
		"bootstrap":      `{"version":1,"cluster":"demo","bootstrap":{"address":"127.0.0.1"},"nodes":[]}`,
		"update's value": fmt.Sprintf(good, `{"name":"a","addresses":[],"update":{"state":"a\nb"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeState([]byte(in), "demo"); err == nil {
				t.Errorf("accepted as %v", got)
			}
		})
	}
	t.Run("size", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "nodes.json")
		if err := os.WriteFile(path, bytes.Repeat([]byte(" "), maxStateBytes+1), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readState(path, "demo"); err == nil || !strings.Contains(err.Error(), "more than") {
			t.Errorf("error %v", err)
		}
	})
}

// FuzzDecodeState checks that what is accepted is valid and comes out again as
// it went in.
func FuzzDecodeState(f *testing.F) {
	data, err := state{Cluster: "demo", Nodes: testRecords()}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1,"cluster":"demo","nodes":[{"name":"a","addresses":null,"labels":{}}]}`))
	f.Add([]byte(`{"version":1,"cluster":"demo","bootstrap":{"gone":true},"nodes":[]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		known, err := decodeState(in, "demo")
		if err != nil {
			return
		}
		out, err := known.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeState(out, "demo")
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if again.Bootstrap != known.Bootstrap {
			t.Errorf("bootstrap %+v, then %+v", known.Bootstrap, again.Bootstrap)
		}
		for i := range known.Nodes {
			if !known.Nodes[i].equal(again.Nodes[i]) {
				t.Errorf("node %d: %+v, then %+v", i, known.Nodes[i], again.Nodes[i])
			}
		}
		newSnapshot(known.Nodes, "a", testSpec(6443), true, known.Bootstrap)
	})
}
