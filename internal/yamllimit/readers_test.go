package yamllimit

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// direct matches calls that decode YAML without a bound.
var direct = regexp.MustCompile(`\by(?:aml|yaml)\.(?:Unmarshal|UnmarshalStrict|YAMLToJSON|YAMLToJSONStrict|NewDecoder)\(`)

// Hard case 53: the offline half decodes YAML of users here, or checks it here.
func TestHardCase53EveryReaderIsBounded(t *testing.T) {
	known := []string{
		"cmd/cli/fn.go",                  // checks it
		"cmd/cli/print_objects.go",       // vipgen's own output
		"internal/yamllimit/decode.go",   // this package
		"internal/day2/adopt/rollout.go", // what the importer wrote
		"render/images.go",               // an asset
		"render/source/column.go",        // parses without decoding
		"render/source/document.go",      // checks it
		"render/source/edit.go",          // compares texts that were checked
		"render/source/stream.go",        // checks it
	}
	root := testkit.Root(t)
	var found []string
	for _, dir := range []string{"cmd/cli", "cmd/command", "ignition", "internal", "render", "templates"} {
		testkit.Must(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && d.Name() == "testbed" {
				return fs.SkipDir // tests and the lab, which read their own files
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if name, _ := filepath.Rel(root, path); direct.Match(text) {
				found = append(found, filepath.ToSlash(name))
				if !slices.Contains(known, filepath.ToSlash(name)) {
					t.Errorf("%s decodes YAML without a bound", name)
				}
			}
			return err
		}))
	}
	for _, name := range known {
		if !slices.Contains(found, name) {
			t.Errorf("%s decodes no YAML any more", name)
		}
	}
}

func TestBound(t *testing.T) {
	for text, want := range map[string]bool{"*x": true, "- *x": true, "a:\n*x": true, "[*x]": true, "{*x : b}": true, "[a,*x]": true, "a:*x": true, "a*x": false, "* x": false, "- **": false, "- *": false} {
		testkit.Equal(testkit.In(t, text), want, mayAlias([]byte(text)))
	}
	text := "a: &x " + strings.Repeat("y", 1000) + "\nb: [" + strings.Repeat("*x,", 50) + "]\n"
	for _, c := range []struct{ name, text, want string }{
		{"few bytes", text, ""},
		{"no alias", strings.Repeat("a * b\n", 10), ""},
		{"many bytes", strings.Replace(text, "*x,", strings.Repeat("*x,", 100), 1), "line 2: aliases that unfold into too much: at most "},
		{"in the second document", "---\na: b\n---\n" + strings.Replace(text, "*x,", strings.Repeat("*x,", 100), 1), "line 5: aliases"},
		{"many documents", strings.Repeat("---\n"+text, 8), "line 15: aliases"},
	} {
		err := Bound([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
