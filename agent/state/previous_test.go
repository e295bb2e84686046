package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Agents of two versions on one node read each other's state: every field that the previous
// version writes has the same name and kind now. The differences are listed in docs/upgrade.md.
func TestPreviousVersion(t *testing.T) {
	compatible[HAProxy](t, nil, []string{"ready: bool"})
	compatible[Firewall](t, nil, []string{"own: bool"})
	compatible[CoreDNS](t, nil, nil)
	compatible[MDNS](t, nil, nil)
	compatible[Keepalived](t,
		[]string{
			"config.applied: float64", "config.appliedAt: string", "config.failed: float64", "config.problem: string",
			"config.refused: float64", "config.refusedAt: string", "config: map[string]interface {}",
		}, []string{"failed: float64", "refused: float64", "reloads: float64"})
}

// compatible reads the published state of a job of the previous version, and compares its
// fields with today's: gone and fresh list the differences.
func compatible[T Job](t *testing.T, gone, fresh []string) *T {
	t.Helper()
	name := (*new(T)).JobName()
	old := testkit.Previous(t, "node/run/vipgen/"+name+"/state.json")
	dir := t.TempDir()
	testkit.Must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	path := filepath.Join(dir, name, fileName)
	testkit.Must(t, os.WriteFile(path, old, 0o600))
	hold(t, path)
	read, err := Read[T](open(t, dir))
	if err != nil || read == nil {
		t.Fatalf("%s: %v, error %v", name, read, err)
	}
	now, err := json.Marshal(read)
	testkit.Must(t, err)
	before, after := fields(t, old), fields(t, now)
	testkit.Equal(testkit.In(t, name), gone, without(before, after))
	testkit.Equal(testkit.In(t, name), fresh, without(after, before))
	return read
}

// fields returns the paths of all fields of a JSON object, each with the kind of its value.
func fields(t *testing.T, data []byte) map[string]bool {
	t.Helper()
	var value any
	testkit.Must(t, json.Unmarshal(data, &value))
	out := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		if path != "" {
			out[fmt.Sprintf("%s: %T", path, value)] = true
		}
		switch v := value.(type) {
		case map[string]any:
			for key, field := range v {
				if path != "" {
					key = path + "." + key
				}
				walk(key, field)
			}
		case []any:
			for _, element := range v {
				walk(path+"[]", element)
			}
		}
	}
	walk("", value)
	return out
}

// without returns the keys of a that b lacks, sorted; nil for none.
func without(a, b map[string]bool) []string {
	only := maps.Clone(a)
	maps.DeleteFunc(only, func(path string, _ bool) bool { return b[path] })
	return slices.Sorted(maps.Keys(only))
}
