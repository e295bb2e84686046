package docs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testkit"
)

// unmarshal reads a YAML or JSON file of the project.
func unmarshal(t *testing.T, name string, into any) {
	t.Helper()
	testkit.Must(testkit.In(t, name), yaml.Unmarshal([]byte(read(t, name)), into))
}

// TestWorkflow: continuous integration runs a script of the project, with the project's version
// of Go, and so does the development container.
func TestWorkflow(t *testing.T) {
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Container struct{ Image string }
			Steps     []struct{ Name, Run string }
		}
	}
	unmarshal(t, "../.github/workflows/ci.yaml", &workflow)
	if workflow.Permissions["contents"] != "read" || len(workflow.Permissions) != 1 {
		t.Errorf("permissions: %v", workflow.Permissions)
	}
	job := workflow.Jobs["all"]
	last := job.Steps[len(job.Steps)-1].Run
	if info, err := os.Stat(filepath.Join("..", last)); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("runs %q: %v", last, err)
	}
	var container struct{ Image, OnCreateCommand string }
	unmarshal(t, "../.devcontainer/devcontainer.json", &container)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	for _, image := range []string{job.Container.Image, container.Image} {
		if !strings.HasSuffix(image, "/golang:"+version+"-bookworm") {
			t.Errorf("image %s, go.mod has Go %s", image, version)
		}
	}
	if !strings.HasSuffix(container.OnCreateCommand, "internal/tools/setup") {
		t.Errorf("the container is set up by %s", container.OnCreateCommand)
	}
}

// TestPublished: the preset for Renovate finds the image in the pages' vipgen.yaml, and the
// entry for SchemaStore names the project's schema.
func TestPublished(t *testing.T) {
	var preset struct {
		CustomManagers []struct {
			Files   []string `json:"managerFilePatterns"`
			Matches []string `json:"matchStrings"`
		}
	}
	unmarshal(t, "../.github/renovate/clusters.json", &preset)
	manager := preset.CustomManagers[0]
	if files := regexp.MustCompile(strings.Trim(manager.Files[0], "/")); !files.MatchString("clusters/demo/vipgen.yaml") || files.MatchString("clusters/demo/other-vipgen.yaml") {
		t.Errorf("files: %s", files)
	}
	image := regexp.MustCompile(manager.Matches[0])
	for text, want := range map[string]string{
		read(t, "install.md"): "registry.example.com/vipgen/vipgen-agent  sha256:" + strings.Repeat("1", 64),
		"images:\n  agent: registry.example.com:5000/vipgen/vipgen-agent:v1.2.3\n": "registry.example.com:5000/vipgen/vipgen-agent v1.2.3 ",
	} {
		m := image.FindStringSubmatch(text)
		if m == nil || strings.Join(m[1:], " ") != want {
			t.Errorf("found %q, want %s", m, want)
		}
	}
	var entry struct {
		FileMatch []string
		URL       string
	}
	unmarshal(t, "../.github/schemastore/catalog.json", &entry)
	file, ours := strings.CutPrefix(entry.URL, "https://raw.githubusercontent.com/vipgen/vipgen/main/")
	if !ours || !json.Valid([]byte(read(t, "../"+file))) {
		t.Errorf("%s is not a schema of the project", entry.URL)
	}
}
