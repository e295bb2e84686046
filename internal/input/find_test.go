package input

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Arguments name a cluster or a fleet; want lists the names of clusters.
func TestFind(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"clusters/fleet.yaml", "clusters/a/install-config.yaml", "clusters/eu/b/install-config.yaml", "clusters/eu/b/vipgen.yaml",
		"clusters/eu/c/install-config.yaml", "clusters/.git/x/install-config.yaml", "flat/one.yaml", "flat/two.yaml", "flat/vipgen.yaml", "empty/x",
	} {
		testkit.WriteFile(t, name, []byte("a: b\n"))
	}
	for _, tt := range []struct {
		args  string
		fleet bool
		want  string // names
		err   string
	}{
		{args: "clusters", fleet: true, want: "a eu/b eu/c"},
		{args: "clusters/", fleet: true, want: "a eu/b eu/c"},
		{args: "clusters/a", want: "a"},
		{args: "clusters/a/install-config.yaml", want: "a"},
		{args: "clusters/eu", fleet: true, want: "b c"},
		{args: "clusters/*/install-config.yaml", fleet: true, want: "a"},
		{args: "clusters/e*/?/install-config.yaml", fleet: true, want: "eu/b eu/c"},
		{args: "clusters/*", fleet: true, want: "a eu/b eu/c"},
		{args: "clusters/a clusters/eu/b/install-config.yaml", fleet: true, want: "a b"},
		{args: "clusters/a clusters/a/install-config.yaml", fleet: true, want: "a"},
		{args: "flat/*.yaml", fleet: true, want: "one two"},
		{args: "flat/one.yaml flat/two.yaml flat/vipgen.yaml", fleet: true, want: "one two"},
		{args: "no-such.yaml", want: "no-such"},
		{args: "-", want: ""},
		{args: "- clusters/a", err: "standard input holds one cluster"},
		{args: "empty", err: "no install-config.yaml there or below"},
		{args: "/", err: "name the folder that holds the clusters"},
		{args: "none/*", err: "no install-config there"},
		{args: "clusters/[", err: "not a pattern"},
		{args: "clusters/a x/../clusters/eu/../a/install-config.yaml x/a/install-config.yaml", err: "would both be called"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			r, err := Find(strings.Fields(tt.args))
			if tt.err != "" {
				testkit.Fails(t, err, tt.err)
				return
			}
			names := lists.Map(r.Clusters, func(m Cluster) string { return m.Name })
			if got := strings.Join(names, " "); err != nil || got != tt.want || r.Several != tt.fleet {
				t.Errorf("%q, fleet %t, %v; want %q, %t", got, r.Several, err, tt.want, tt.fleet)
			}
		})
	}
}
