package facts

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

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
