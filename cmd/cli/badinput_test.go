package cli

import (
	"bytes"
	_ "embed"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the reports in testdata/bad")

// goodInstallConfig is used for a case without an install-config.
//
//go:embed testdata/install-config.yaml
var goodInstallConfig string

// badCase is a file of testdata/bad: what is wrong, the command line, its files, and the
// report.
type badCase struct {
	archive *txtar.Archive
	args    []string
	files   map[string]string
	report  string
}

const reportFile = "report"

func readBadCase(t *testing.T, name string) *badCase {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	testkit.Must(t, err)
	_, line, ok := strings.Cut(string(archive.Comment), "$ vipgen ")
	if !ok {
		t.Fatal("no line with the command")
	}
	c := &badCase{archive: archive, args: strings.Fields(line), files: map[string]string{"install-config.yaml": goodInstallConfig}}
	for _, f := range archive.Files {
		if f.Name == reportFile {
			c.report = string(f.Data)
		} else {
			c.files[f.Name] = string(f.Data)
		}
	}
	return c
}

// rewrite puts a report into the file of the case.
func (c *badCase) rewrite(name, report string) error {
	c.archive.Files = slices.DeleteFunc(c.archive.Files, func(f txtar.File) bool { return f.Name == reportFile })
	c.archive.Files = append(c.archive.Files, txtar.File{Name: reportFile, Data: []byte(report)})
	return os.WriteFile(name, txtar.Format(c.archive), 0o644)
}

// run runs a command line in the current directory.
func run(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	code = Run(args, strings.NewReader(stdin), &out, &errOut)
	checkOutput(args, out.String())
	return code, out.String(), errOut.String()
}

// lay writes files into the current directory.
func lay(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		testkit.WriteFile(t, name, []byte(text))
	}
}

// snapshot reads all files under a directory.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(p)
		out[p] = string(text)
		return err
	})
	testkit.Must(t, err)
	return out
}

// unprintable matches characters that no report may contain.
var unprintable = regexp.MustCompile(`[^\P{C}\n\t]`)

// Every invalid input causes exactly its report and exit code 2, or 3 if a file cannot be read;
// nothing is printed to standard output or written, even over existing files.
func TestBadInput(t *testing.T) {
	names, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(names) < 60 {
		t.Fatalf("%d cases, %v", len(names), err)
	}
	top, err := os.Getwd()
	testkit.Must(t, err)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			c := readBadCase(t, name)
			t.Chdir(t.TempDir())
			lay(t, c.files)
			lay(t, map[string]string{"rendered/.vipgen-files": "old\n", "rendered/old": "rendered before\n"})
			before := snapshot(t, ".")
			code, stdout, report := run("", c.args...)
			want := command.Input
			if strings.Contains(report, "["+string(problem.Unreadable)+"]\n") {
				want = command.Failed
			}
			if code != want || stdout != "" {
				t.Errorf("exit code %d, want %d, standard output %q", code, want, stdout)
			}
			if unprintable.MatchString(report) {
				t.Errorf("the report does not print: %q", report)
			}
			if *update {
				testkit.Must(t, c.rewrite(filepath.Join(top, name), report))
			} else if diff := cmp.Diff(c.report, report); diff != "" {
				t.Errorf("report (- wanted, + got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(c.args, " "), " -") {
				if code, _, again := run("", append(c.args, "--dir", "rendered")...); code != want || again != report {
					t.Errorf("with --dir: exit code %d, report\n%s", code, again)
				}
			}
			testkit.Equal(t, before, snapshot(t, "."))
		})
	}
}

// The table has a case for every code of reports.
func TestBadInputCoversCodes(t *testing.T) {
	text := testkit.ReadFile(t, "../../api/problem/codes.go")
	codes := regexp.MustCompile(`(?m)^\t\w+ +Code = "(.+)"$`).FindAllSubmatch(text, -1)
	if len(codes) < 20 {
		t.Fatalf("only %d codes found", len(codes))
	}
	names, err := filepath.Glob("testdata/bad/*.txtar")
	testkit.Must(t, err)
	var reports strings.Builder
	for _, name := range names {
		reports.WriteString(readBadCase(t, name).report)
	}
	elsewhere := map[string]string{ // tests of what is reported next to output
		"shadowed":              "TestDiffWithWhatRuns",
		"unknown-operator-file": "TestAdoptRefuses",
		"other-release":         "TestImagesFollowTheRelease",
		"default-image":         "TestDefaultImage",
		"unpinned-image":        "TestUnpinnedImagesComeLast",
	}
	for _, code := range codes {
		if elsewhere[string(code[1])] == "" && !strings.Contains(reports.String(), "["+string(code[1])+"]\n") {
			t.Errorf("no case has a report with the code %s", code[1])
		}
	}
}
