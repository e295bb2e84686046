package importer_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/day2/importer"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/clusters"
	"github.com/vipgen/vipgen/render"
)

var update = flag.Bool("update", false, "write the expected output; then read it")

// secret stands for the secrets in every source.
const secret = "hunter2"

// sourceFiles reads a case as `vipgen import` does.
func sourceFiles(t testing.TB, name string) []render.File {
	t.Helper()
	root := filepath.Join("testdata", name)
	var out []render.File
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel("testdata", p)
		if err != nil || !importer.Relevant(filepath.ToSlash(rel)) {
			return err
		}
		data, err := os.ReadFile(p)
		out = append(out, render.File{Name: filepath.ToSlash(rel), Data: data})
		return err
	})
	if err != nil || len(out) == 0 {
		t.Fatal("no files", err)
	}
	return out
}

func importCase(t testing.TB, name string) *importer.Result {
	t.Helper()
	r, list := importer.Read(sourceFiles(t, name), importer.Given{})
	if r == nil {
		t.Fatalf("%s:\n%s", name, list.Error())
	}
	return r
}

// read imports valid files.
func read(t testing.TB, files []render.File, given importer.Given) *importer.Result {
	t.Helper()
	r, list := importer.Read(files, given)
	if r == nil {
		t.Fatal(list.Error())
	}
	return r
}

// load renders the imported input.
func load(t testing.TB, r *importer.Result) *render.Cluster {
	t.Helper()
	return clusters.Load(t, string(r.InstallConfig), string(r.VIPConfig))
}

// cases are the folders of testdata with sources.
var cases = []string{"baremetal", "multicast", "dual-stack", "vsphere", "arbiter", "metallb"}

// TestExpected compares with files that were reviewed line by line.
func TestExpected(t *testing.T) {
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			r := importCase(t, name)
			report, err := json.MarshalIndent(r, "", "  ")
			testkit.Must(t, err)
			for file, got := range map[string][]byte{"install-config.yaml": r.InstallConfig, "vipgen.yaml": r.VIPConfig, "report.json": append(report, '\n')} {
				testkit.Kept(t, filepath.Join("testdata", "expected", name, file), got, *update)
			}
		})
	}
}

// problemsOf returns the report of files that cannot be imported.
func problemsOf(t *testing.T, files []render.File, given importer.Given) problem.List {
	t.Helper()
	r, list := importer.Read(files, given)
	if r != nil || list.Err() == nil {
		t.Errorf("imported: %v", list)
	}
	return list
}
