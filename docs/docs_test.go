// Package docs_test keeps the pages in step with the code.
package docs_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func read(t *testing.T, name string) string {
	t.Helper()
	return string(testkit.ReadFile(t, name))
}

func TestEveryFieldIsDocumented(t *testing.T) {
	page := read(t, "input.md")
	var walk func(at reflect.Type, path string)
	walk = func(at reflect.Type, path string) {
		if at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || at.PkgPath() != reflect.TypeFor[v1alpha1.VIPConfig]().PkgPath() {
			return
		}
		for f := range at.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			testkit.Equal(testkit.In(t, "input.md mentions", path, name), true, regexp.MustCompile(`\b`+name+`\b`).MatchString(page))
			walk(f.Type, path+"."+name)
		}
	}
	walk(reflect.TypeFor[v1alpha1.VIPConfig](), "")
}

func TestDefaultPortsAreDocumented(t *testing.T) {
	page := read(t, "input.md")
	ports := reflect.ValueOf(v1alpha1.DefaultPorts)
	for f, v := range ports.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		testkit.Contains(t, page, fmt.Sprintf("| `%s` | %d |", name, v.Int()))
	}
}

func TestEveryProblemIsDocumented(t *testing.T) {
	page := read(t, "problems.md")
	codes := regexp.MustCompile(`Code = "(.*)"`).FindAllStringSubmatch(read(t, "../api/problem/codes.go"), -1)
	if len(codes) == 0 {
		t.Fatal("no codes")
	}
	known := map[string]bool{}
	for _, c := range codes {
		known[c[1]] = true
		testkit.Equal(testkit.In(t, "problems.md has a row for", c[1]), true, strings.Contains(page, "| `"+c[1]+"` |"))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(page, -1) {
		testkit.Equal(testkit.In(t, "the code of problems.md is known:", row[1]), true, known[row[1]])
	}
}

// Each finding of `vipgen status` has a row with its remedy.
func TestFindingsAreDocumented(t *testing.T) {
	page := read(t, "troubleshoot.md")
	codes := regexp.MustCompile(`Code = "(.*)"`).FindAllStringSubmatch(read(t, "../internal/day2/status/status.go"), -1)
	if len(codes) < 15 {
		t.Fatalf("%d codes", len(codes))
	}
	for _, c := range codes {
		row := regexp.MustCompile("(?m)^\\|[^|]*`" + c[1] + "`[^|]*\\|")
		testkit.Equal(testkit.In(t, "troubleshoot.md has a row for", c[1]), true, row.MatchString(page))
	}
}

var (
	testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	hardCase = regexp.MustCompile(`HardCase(\d\d)`)
)

func TestHardCasesAreListed(t *testing.T) {
	page := read(t, "hard-cases.md")
	for n := 1; n <= 60; n++ {
		testkit.Contains(t, page, fmt.Sprintf("\n| %d | ", n))
	}
	tests, folders := map[string]bool{}, map[string]bool{} // folders with tests of a case: "03 agent/nodes"
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir // a root file system may be under construction in .cache
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text := read(t, path)
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			tests[m[1]] = true
		}
		for _, m := range hardCase.FindAllStringSubmatch(text, -1) {
			folders[m[1]+" "+strings.TrimPrefix(filepath.Dir(path), "../")] = true
		}
		return nil
	})
	testkit.Must(t, err)
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(page, -1) {
		testkit.Equal(testkit.In(t, "the test of hard-cases.md exists:", m[1]), true, tests[m[1]])
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|.*\| (.*) \|$`).FindAllStringSubmatch(page, -1) {
		for item := range strings.SplitSeq(row[2], "; ") {
			if m := regexp.MustCompile("^`([a-z0-9/]+)`").FindStringSubmatch(item); m != nil && !folders[fmt.Sprintf("%02s %s", row[1], m[1])] {
				t.Errorf("hard-cases.md: no test of hard case %s in %s", row[1], m[1])
			}
		}
	}
	for _, list := range regexp.MustCompile("cases? (`[^;|(]*)").FindAllStringSubmatch(page, -1) {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list[1], -1) {
			_, err := os.Stat("../golden/cases/" + m[1])
			testkit.Check(testkit.In(t, "hard-cases.md"), err)
		}
	}
}

// TestPathsMatchCalls: each line of the two paths of architecture.md names a function of its
// package.
func TestPathsMatchCalls(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| \\d+ \\| `([^`]+)` \\| `(\\w+)` \\|").FindAllStringSubmatch(read(t, "architecture.md"), -1)
	if len(rows) < 30 {
		t.Fatalf("%d calls", len(rows))
	}
	for _, row := range rows {
		files, err := filepath.Glob(filepath.Join("..", row[1], "*.go"))
		testkit.Must(t, err)
		function := regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + row[2] + `\(`)
		found := slices.ContainsFunc(files, func(f string) bool { return function.MatchString(read(t, f)) })
		testkit.Equal(testkit.In(t, "architecture.md: function", row[2], "in", row[1]), true, found)
	}
}

// TestLinks follows links between pages, and to their headings.
func TestLinks(t *testing.T) {
	top, err := filepath.Glob("*.md")
	testkit.Must(t, err)
	agent := agentPages(t)
	project, err := filepath.Glob("../*.md")
	testkit.Must(t, err)
	decisions, err := filepath.Glob("adr/*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatal("no decisions", err)
	}
	pages := slices.Concat(top, agent, decisions, []string{"results/README.md"})
	link := regexp.MustCompile(`\]\(([^)]+)\)`)
	for _, page := range slices.Concat(pages, project) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if strings.HasPrefix(m[1], "https://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page // a heading of the same page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if anchor != "" && !headings(read(t, target))[anchor] {
				t.Errorf("%s: link to %s: no such heading", page, m[1])
			}
		}
	}
	index := read(t, "README.md")
	for _, page := range pages {
		if page != "README.md" && !strings.HasPrefix(page, "adr/0") && !strings.Contains(index, "("+page+")") {
			t.Errorf("README.md does not link to %s", page)
		}
	}
	results, err := filepath.Glob("results/*.csv")
	testkit.Must(t, err)
	for _, file := range slices.Concat(decisions, results) {
		name := filepath.Base(file)
		if name != "README.md" && !strings.Contains(read(t, filepath.Join(filepath.Dir(file), "README.md")), "("+name+")") {
			t.Errorf("%s: not in the README.md of its folder", file)
		}
	}
}

// agentPages returns the pages of the agent, which are beside its code.
func agentPages(t *testing.T) []string {
	t.Helper()
	jobs, err := filepath.Glob("../agent/*/README.md")
	if err != nil || len(jobs) == 0 {
		t.Fatal("no pages of the agent", err)
	}
	return append(jobs, "../agent/README.md", "../cmd/agentcli/README.md")
}

// TestJobPages: each job has a page next to its code, in the format of CoreDNS' plugins.
func TestJobPages(t *testing.T) {
	jobs, err := filepath.Glob("../agent/*/kind.go")
	if err != nil || len(jobs) < 5 {
		t.Fatal(jobs, err)
	}
	for _, job := range jobs {
		page := filepath.Join(filepath.Dir(job), "README.md")
		var sections []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, page), -1) {
			sections = append(sections, m[1])
		}
		testkit.Equal(testkit.In(t, page), []string{"Name", "Description", "Configuration", "Metrics", "Health", "Examples", "Bugs"}, sections)
	}
}

// TestFiguresOfReadme: the figures of the project's front page are those of the benchmark's.
func TestFiguresOfReadme(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(read(t, "results/2026-11-22-bench.csv"))).ReadAll()
	testkit.Must(t, err)
	measured := map[string][]string{}
	for _, r := range rows {
		measured[r[0]] = r
	}
	figures := regexp.MustCompile("(?m)^\\| .* \\(`([a-z-]+)`\\) \\| ([0-9 /]+) \\| ([0-9 /]+) \\|$").FindAllStringSubmatch(read(t, "../README.md"), -1)
	if len(figures) < 3 {
		t.Fatalf("%d rows", len(figures))
	}
	for _, row := range figures {
		if m := measured[row[1]]; m == nil || m[3] != row[2] || !strings.HasPrefix(m[1], row[3]+" (") {
			t.Errorf("%s: README.md has %q and %q, the benchmark %q", row[1], row[2], row[3], m)
		}
	}
	drawn := read(t, "pictures/failover.svg")
	for _, m := range regexp.MustCompile(`(\d+) ms`).FindAllString(regexp.MustCompile(`!\[[^\]]*\]`).FindString(read(t, "../README.md")), -1) {
		testkit.Contains(testkit.In(t, m), drawn, "no answer for "+m)
	}
}

// headings returns the anchors of a page.
func headings(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		text := regexp.MustCompile(`[^a-z0-9 -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(text, " ", "-")] = true
	}
	return out
}

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
	testkit.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions)
	job := workflow.Jobs["all"]
	last := job.Steps[len(job.Steps)-1].Run
	if info, err := os.Stat(filepath.Join("..", last)); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("runs %q: %v", last, err)
	}
	var container struct{ Image, OnCreateCommand string }
	unmarshal(t, "../.devcontainer/devcontainer.json", &container)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	for _, image := range []string{job.Container.Image, container.Image} {
		testkit.Equal(testkit.In(t, image, "is of Go", version), true, strings.HasSuffix(image, "/golang:"+version+"-bookworm"))
	}
	setup := container.OnCreateCommand
	testkit.Equal(testkit.In(t, "the container is set up by", setup), true, strings.HasSuffix(setup, "internal/tools/setup"))
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

// TestRooms: the drawing in architecture.md has an arrow for each folder that imports another,
// and no other. Tests may import more.
func TestRooms(t *testing.T) {
	_, drawing, _ := strings.Cut(read(t, "architecture.md"), "```mermaid\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	drawn, rooms := map[string]bool{}, map[string]bool{"api": true}
	for _, arrow := range regexp.MustCompile(`(\S+) --> (.*)`).FindAllStringSubmatch(drawing, -1) {
		for to := range strings.SplitSeq(arrow[2], " & ") {
			drawn[arrow[1]+" "+to], rooms[arrow[1]], rooms[to] = true, true, true
		}
	}
	room := func(folder string) string {
		for ; folder != "."; folder = filepath.Dir(folder) {
			if rooms[folder] {
				return folder
			}
		}
		return ""
	}
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".cache" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		from := room(strings.TrimPrefix(filepath.Dir(path), "../"))
		if from == "" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if name, ours := strings.CutPrefix(name, "github.com/vipgen/vipgen/"); ours {
				if to := room(name); to != "" && to != from && to != "api" {
					there[from+" "+to] = true
				}
			}
		}
		return nil
	})
	testkit.Must(t, err)
	testkit.Equal(t, slices.Sorted(maps.Keys(drawn)), slices.Sorted(maps.Keys(there)))
}
