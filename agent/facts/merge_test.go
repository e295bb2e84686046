package facts

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// peers are given as "name address...", control-plane nodes but for the
// bootstrap. A name host-N is made up.
func peers(list ...string) []v1alpha1.Peer {
	var out []v1alpha1.Peer
	for _, line := range list {
		words := strings.Fields(line)
		p := v1alpha1.Peer{Name: words[0], Role: v1alpha1.RoleMaster, Addresses: testkit.Addrs(words[1:]...)}
		p.Unnamed = strings.HasPrefix(p.Name, "host-")
		if p.Name == "bootstrap" {
			p.Role = v1alpha1.RoleBootstrap
		}
		out = append(out, p)
	}
	return out
}

func describe(peers []v1alpha1.Peer) string {
	var out []string
	for _, p := range peers {
		text := p.Name
		for _, a := range p.Addresses {
			text += " " + a.String()
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestMerge(t *testing.T) {
	for _, tt := range []struct {
		name               string
		own, listed, known []string
		want               string
	}{
		{"nothing from the API", nil, nil, []string{"m1 192.0.2.11"}, "m1 192.0.2.11"},
		{"both", nil, []string{"m2 192.0.2.12"}, []string{"m1 192.0.2.11"}, "m2 192.0.2.12, m1 192.0.2.11"},
		{"this node itself", nil, []string{"m2 192.0.2.12"}, []string{"m0 192.0.2.10"}, "m2 192.0.2.12"},
		{"hard case 15: it moved", nil, []string{"m1 192.0.2.77"}, []string{"m1 192.0.2.11"}, "m1 192.0.2.77"},
		{"hard case 15: another name took the address over", nil, []string{"m3 192.0.2.11"}, []string{"m1 192.0.2.11"}, "m3 192.0.2.11"},
		{"hard case 15: this node took it over", []string{"192.0.2.11"}, nil, []string{"m1 192.0.2.11"}, ""},
		{"one of two addresses was taken over", nil, []string{"m3 192.0.2.11"}, []string{"m1 192.0.2.12 192.0.2.11"}, "m3 192.0.2.11"},
		{"the bootstrap", nil, []string{"m1 192.0.2.11"}, []string{"bootstrap 192.0.2.9"}, "m1 192.0.2.11, bootstrap 192.0.2.9"},
		{"the bootstrap beside the node that it becomes", nil, []string{"m1 192.0.2.11"}, []string{"bootstrap 192.0.2.11"}, "m1 192.0.2.11, bootstrap 192.0.2.11"},
		{"both known beforehand", nil, nil, []string{"m1 192.0.2.11", "bootstrap 192.0.2.11"}, "m1 192.0.2.11, bootstrap 192.0.2.11"},
		{"a name that is made up", nil, []string{"m1 192.0.2.11"}, []string{"host-1 192.0.2.11", "host-2 192.0.2.12"}, "m1 192.0.2.11, host-2 192.0.2.12"},
		{"this node was the bootstrap", []string{"192.0.2.10"}, []string{"m1 192.0.2.11"}, []string{"bootstrap 192.0.2.10"}, "m1 192.0.2.11"},
	} {
		got := merge("m0", testkit.Addrs(tt.own...), peers(tt.listed...), peers(tt.known...))
		testkit.Equal(testkit.In(t, tt.name), tt.want, describe(got))
	}
}

// A node with the name of a placeholder remains a separate node.
func TestMergePlaceholderNames(t *testing.T) {
	named := peers("m1 192.0.2.11", "w 192.0.2.20")
	named[1].Name = "host-2"
	got := merge("host-1", testkit.Addrs("192.0.2.10"), named, peers("host-1 192.0.2.11", "host-2 192.0.2.12", "host-3 192.0.2.10"))
	testkit.Equal(t, "m1 192.0.2.11, host-2 192.0.2.20, host-2-host 192.0.2.12", describe(got))
}

func TestBootstraps(t *testing.T) {
	at := func(a string) nodelist.Bootstrap { return nodelist.Bootstrap{Address: netip.MustParseAddr(a)} }
	for _, tt := range []struct {
		name  string
		known []string
		b     nodelist.Bootstrap
		want  string
	}{
		{"nothing is known by now", []string{"m1 192.0.2.11", "bootstrap 192.0.2.9"}, nodelist.Bootstrap{}, "m1 192.0.2.11, bootstrap 192.0.2.9"},
		{"it was not known beforehand", []string{"m1 192.0.2.11"}, at("192.0.2.9"), "m1 192.0.2.11, bootstrap 192.0.2.9"},
		{"it was", []string{"bootstrap 192.0.2.9", "m1 192.0.2.11"}, at("192.0.2.9"), "m1 192.0.2.11, bootstrap 192.0.2.9"},
		{"with another address", []string{"bootstrap 192.0.2.8"}, at("192.0.2.9"), "bootstrap 192.0.2.9 192.0.2.8"},
		{"with both families", []string{"bootstrap 2001:db8::9 192.0.2.9"}, at("192.0.2.9"), "bootstrap 192.0.2.9 2001:db8::9"},
		{"a node has its address", []string{"m1 192.0.2.9"}, at("192.0.2.9"), "m1 192.0.2.9, bootstrap 192.0.2.9"},
		{"it is gone", []string{"bootstrap 192.0.2.9", "m1 192.0.2.11"}, nodelist.Bootstrap{Gone: true}, "bootstrap 192.0.2.9, m1 192.0.2.11"},
		{"gone from where it was", []string{"m1 192.0.2.11"}, nodelist.Bootstrap{Address: netip.MustParseAddr("192.0.2.9"), Gone: true}, "m1 192.0.2.11, bootstrap 192.0.2.9"},
	} {
		known := peers(tt.known...)
		got := bootstraps(known, tt.b)
		testkit.Equal(testkit.In(t, tt.name), tt.want, describe(got))
		testkit.Equal(testkit.In(t, tt.name, "its input"), describe(peers(tt.known...)), describe(known))
	}
}

// Hard case 40: a Node named like the bootstrap host does not replace it.
func TestHardCase40NodeCalledBootstrap(t *testing.T) {
	known := peers("bootstrap 192.0.2.9", "m1 192.0.2.11")
	listed := []v1alpha1.Peer{{Name: "bootstrap", Role: v1alpha1.RoleWorker, Addresses: testkit.Addrs("192.0.2.20")}}
	got := merge("m0", nil, listed, known)
	if want := "bootstrap 192.0.2.20, bootstrap-host 192.0.2.9, m1 192.0.2.11"; describe(got) != want || got[1].Role != v1alpha1.RoleBootstrap {
		t.Errorf("got %s, want %s", describe(got), want)
	}
	testkit.Equal(testkit.In(t, "on that node"), "bootstrap-host 192.0.2.9, m1 192.0.2.11", describe(merge("bootstrap", nil, nil, known)))
}

// Hard case 37: invalid entries of a list of nodes are skipped, and only these.
func TestHardCase37ListOfNodes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nodes.yaml")
	text := `[{name: m0, role: master, addresses: [192.0.2.10]}, {name: "a b", role: worker, addresses: []},
		{name: w0, role: Infra_GPU, addresses: []}, {name: w1, role: worker, addresses: [127.0.0.1]},
		{name: m1, role: master, addresses: [192.0.2.11]}, {name: m1, role: master, addresses: [192.0.2.12]}]`
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	var log bytes.Buffer
	s := NewFile(path, "m0", slog.New(slog.NewTextHandler(&log, nil))).Current()
	if !s.Registered || describe(s.Peers) != "m1 192.0.2.11" {
		t.Errorf("registered %v, peers %s", s.Registered, describe(s.Peers))
	}
	if strings.Count(log.String(), "level=WARN") != 1 || !strings.Contains(log.String(), "m1 is listed twice") {
		t.Errorf("the log:\n%s", log.String())
	}
}

// FuzzListOfNodes reads arbitrary lists of nodes: accepted entries are valid in every
// configuration.
func FuzzListOfNodes(f *testing.F) {
	f.Add([]byte("- {name: master-0, role: master, addresses: [192.0.2.10]}\n- {name: self, role: master, addresses: [192.0.2.11]}\n"))
	f.Add([]byte("- {name: a, role: \"\", addresses: [x]}\n- {name: a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "nodes.yaml")
		testkit.Must(t, os.WriteFile(path, data, 0o600))
		s := NewFile(path, "self", slog.New(slog.DiscardHandler)).Current()
		names := map[string]bool{}
		for _, p := range s.Peers {
			if err := p.Validate().Err(); err != nil || names[p.Name] || p.Name == "self" {
				t.Errorf("%+v: %v", p, err)
			}
			names[p.Name] = true
		}
	})
}
