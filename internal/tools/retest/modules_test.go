package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The modules of images and of the lab use the same versions as vipgen: one different version
// low in the graph, and each package above it is compiled again for them.
func TestModulesAgree(t *testing.T) {
	t.Parallel()
	versions := func(module string) map[string]string {
		cmd := exec.Command("go", "mod", "edit", "-json")
		cmd.Dir = filepath.Join(testkit.Root(t), module)
		out, err := cmd.Output()
		testkit.Must(t, err)
		var mod struct {
			Require []struct{ Path, Version string }
		}
		testkit.Must(t, json.Unmarshal(out, &mod))
		all := map[string]string{}
		for _, r := range mod.Require {
			all[r.Path] = r.Version
		}
		return all
	}
	own := versions(".")
	for _, module := range []string{"lab", "internal/image"} {
		list := exec.Command("go", "list", "./...")
		list.Dir = filepath.Join(testkit.Root(t), module)
		testkit.Run(testkit.In(t, module), list)
		for path, version := range versions(module) {
			if have, shared := own[path]; shared && have != version {
				t.Errorf("%s has %s %s, vipgen %s: run `go get %s@%s` and `go mod tidy`", module, path, version, have, path, version)
			}
		}
	}
}
