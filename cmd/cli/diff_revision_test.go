package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The configuration of a repository is controlled by its author. Git runs configured programs
// to fetch missing objects; vipgen's Git runs none of them.
func TestHostileRepository(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	other := t.TempDir()
	git1(t, "-C", other, "init", "-q")
	for name, remote := range map[string][]string{
		"ext":        {"remote.origin.url", `ext::sh SCRIPT`, "protocol.ext.allow", "always"},
		"ssh":        {"remote.origin.url", "ssh://192.0.2.1/x", "core.sshCommand", "sh SCRIPT"},
		"uploadpack": {"remote.origin.url", other, "remote.origin.uploadpack", "sh SCRIPT"},
		"proxy":      {"remote.origin.url", "git://192.0.2.1/x", "core.gitProxy", "SCRIPT"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
			t.Chdir(dir)
			script := filepath.Join(t.TempDir(), "script")
			testkit.Must(t, os.WriteFile(script, []byte("#!/bin/sh\n> "+ran+"\nexit 1\n"), 0o700))
			lay(t, map[string]string{"a/x.yaml": "a: b\n", "b/y.yaml": "c: d\n", ".gitattributes": "* diff=evil filter=evil\n"})
			git1(t, "init", "-q")
			git1(t, "add", ".")
			git1(t, "commit", "-q", "-m", "one")
			hooks := t.TempDir()
			for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"} {
				testkit.Must(t, os.Symlink(script, filepath.Join(hooks, hook)))
			}
			settings := append(remote, "core.repositoryFormatVersion", "1", "extensions.partialClone", "origin", "remote.origin.promisor", "true",
				"core.fsmonitor", "SCRIPT", "core.hooksPath", hooks, "core.pager", "SCRIPT", "pager.cat-file", "SCRIPT", "core.editor", "SCRIPT",
				"alias.cat-file", "!SCRIPT", "alias.ls-tree", "!SCRIPT", "alias.rev-parse", "!SCRIPT", "diff.evil.textconv", "SCRIPT",
				"filter.evil.smudge", "SCRIPT", "core.alternateRefsCommand", "SCRIPT", "credential.helper", "!SCRIPT")
			for i := 0; i < len(settings); i += 2 {
				git1(t, "config", settings[i], strings.ReplaceAll(settings[i+1], "SCRIPT", script))
			}
			missing, err := git("rev-parse", "HEAD:a/x.yaml")
			testkit.Must(t, err)
			id := strings.TrimSpace(string(missing))
			testkit.Must(t, os.Remove(filepath.Join(".git/objects", id[:2], id[2:])))
			tree, err := git("rev-parse", "HEAD:b")
			testkit.Must(t, err)
			dropped := strings.TrimSpace(string(tree))
			testkit.Must(t, os.Remove(filepath.Join(".git/objects", dropped[:2], dropped[2:])))

			for _, path := range []string{"HEAD:a", "HEAD:a/x.yaml", "HEAD:b", "HEAD:b/y.yaml", "HEAD:", "HEAD:.gitattributes", id + "^{tree}:x"} {
				if code, _, errOut := run("", "diff", path, "a"); code == command.OK {
					t.Errorf("%s: %s", path, errOut)
				}
				if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
					t.Fatalf("%s ran the repository's program", path)
				}
			}
			_ = exec.Command("git", "cat-file", "-p", id).Run() // fails: Git fetches nothing
			if _, err := os.Stat(ran); err != nil {
				t.Errorf("the repository is harmless: %v", err)
			}
		})
	}
}

// A few objects can describe a tree of any number of files.
func TestRevisionOfBillions(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Chdir(t.TempDir())
	git1(t, "init", "-q")
	made := func(stdin string, args ...string) string {
		c := exec.Command("git", args...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.Output()
		testkit.Must(t, err)
		return strings.TrimSpace(string(out))
	}
	entry := "100644 blob " + made("", "hash-object", "-w", "--stdin")
	for range 9 {
		var tree strings.Builder
		for i := range 10 {
			fmt.Fprintf(&tree, "%s\t%d\n", entry, i)
		}
		entry = "040000 tree " + made(tree.String(), "mktree")
	}
	code, _, errOut := run("", "diff", strings.Fields(entry)[2]+":", ".")
	if code == command.OK || !strings.Contains(errOut, "MiB: name a folder with fewer files") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
}

// Links, other repositories and hidden files of a revision are left out.
func TestListing(t *testing.T) {
	r := &revision{blobs: map[string]string{}}
	r.parse("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00120000 blob cc\tlink.yaml\x00160000 commit dd\tmodule\x00100644 blob ee\t.hidden/x.yaml\x00100644 blob ff\td/.git.yaml\x00")
	if len(r.blobs) != 2 || r.blobs["x.yaml"] != "aa" || r.blobs["d/y z.yaml"] != "bb" {
		t.Errorf("%v", r.blobs)
	}
}

func FuzzListing(f *testing.F) {
	f.Add("100644 blob aa\tx.yaml\x00100755 blob bb\td/y z.yaml\x00")
	f.Fuzz(func(t *testing.T, listing string) {
		r := &revision{blobs: map[string]string{}}
		r.parse(listing)
		for name, object := range r.blobs {
			if strings.ContainsAny(object, " \n\t\x00") {
				t.Errorf("%q: %q", name, object)
			}
		}
	})
}
