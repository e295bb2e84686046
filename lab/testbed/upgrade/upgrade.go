// Package upgrade builds the version that clusters are upgraded from, and downgraded to.
package upgrade

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Programs are paths of that version's programs.
type Programs struct{ Vipgen, Agent string }

// Build returns the programs of that version, built from the repository's history if necessary:
// such a test is Long. In a clone without the commit it fails with advice.
func Build(t testing.TB) Programs {
	t.Helper()
	testkit.Long(t)
	root := testkit.Root(t)
	dir := filepath.Join(root, ".cache", "test", "vipgen-"+testkit.PreviousCommit[:12])
	if err := build(root, dir); err != nil {
		t.Fatalf("programs of %.12s, the version before: %v", testkit.PreviousCommit, err)
	}
	return Programs{filepath.Join(dir, "bin", "vipgen"), filepath.Join(dir, "bin", "vipgen-agent")}
}

// build builds the programs in a directory, once; other tests wait for the lock meanwhile.
func build(root, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	bin := filepath.Join(dir, "bin")
	if _, err := os.Stat(bin); err == nil {
		return nil
	}
	source, err := os.MkdirTemp(dir, "source-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(source)
	if err := checkOut(root, source); err != nil {
		return err
	}
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", "bin/", "./cmd/vipgen", "./cmd/vipgen-agent")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return os.Rename(filepath.Join(source, "bin"), bin)
}

// checkOut writes the commit's files into a directory.
func checkOut(root, dir string) error {
	git := func(args ...string) *exec.Cmd { return exec.Command("git", append([]string{"-C", root}, args...)...) }
	if git("cat-file", "-e", testkit.PreviousCommit+"^{commit}").Run() != nil {
		return errors.New("the commit is not in this clone, which is a shallow one or no clone at all: run `git fetch --unshallow`")
	}
	archive := filepath.Join(dir, "source.tar")
	for _, command := range []*exec.Cmd{git("archive", "-o", archive, testkit.PreviousCommit), exec.Command("tar", "-x", "-C", dir, "-f", archive)} {
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", command.Args, err, out)
		}
	}
	return os.Remove(archive)
}
