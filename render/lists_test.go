package render

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestPlatforms compares code that cannot read the table of platforms with it: agents, which do
// not import assets, the reader of each platform's fields, and text.
func TestPlatforms(t *testing.T) {
	var virtual []string
	readme := testkit.ReadFile(t, "../README.md")
	for _, p := range assets.Platforms {
		if p.Kind != assets.OnPremises {
			continue
		}
		if spec := (&v1alpha1.ClusterConfigSpec{Platform: p.Name}); spec.OperatorHasVIPs() != p.HasVIPs() {
			t.Errorf("%s: agents take it for one with VIPs: %v", p.Name, spec.OperatorHasVIPs())
		}
		if !bytes.Contains(readme, []byte("`"+p.Name+"`")) {
			t.Errorf("README.md does not name %s", p.Name)
		}
		if p.HasVIPs() {
			text := vips(p.Name)
			if p.Name == "ovirt" {
				text = strings.NewReplacer("apiVIPs", "api_vips", "ingressVIPs", "ingress_vips").Replace(text)
			}
			if c := mustLoad(t, input("demo", text, ""), Options{}); c.Config.Spec.Groups[0].VIPs[0].String() != "192.0.2.2" {
				t.Errorf("%s: its VIPs are not read", p.Name)
			}
		}
		if p.Virtual {
			virtual = append(virtual, p.Name)
		}
	}
	slices.Sort(virtual)
	for file, text := range map[string]string{
		"../api/v1alpha1/vipconfig.go": `By default "virtual" on platforms ([a-z, ]+), whose`,
		"../cmd/cli/init.go":           `the default on ([a-z, ]+), as fast is elsewhere`,
	} {
		m := regexp.MustCompile(text).FindSubmatch(testkit.ReadFile(t, file))
		if m == nil {
			t.Fatalf("%s: no %s", file, text)
		}
		got := strings.Split(strings.Replace(string(m[1]), " and ", ", ", 1), ", ")
		slices.Sort(got)
		testkit.Equal(testkit.In(t, file), virtual, got)
	}
}

// TestFormats: each output format is rendered and documented.
func TestFormats(t *testing.T) {
	c := mustLoad(t, input("demo", managed, ""), Options{})
	page := testkit.ReadFile(t, "../docs/output.md")
	for _, f := range Formats() {
		if files, err := new(Renderer).Tree(c, Want{Formats: []Format{f}}); err != nil || len(files) == 0 {
			t.Errorf("%s: %d files, %v", f, len(files), err)
		}
		if !bytes.Contains(page, []byte("`"+string(f)+"`")) {
			t.Errorf("docs/output.md does not name the format %s", f)
		}
	}
}
