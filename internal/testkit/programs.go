package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// SearchPath is where Debian keeps programs; the PATH of a test may leave out
// the directories for the administrator.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Program gives the path of a program from a Debian package. It declares no kind.
func Program(t testing.TB, name string) string {
	t.Helper()
	needsRoot(t)
	for _, dir := range filepath.SplitList(SearchPath) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: run `make setup`", name)
	return ""
}

// Tool gives the path of a program that the Makefile builds at a pinned version,
// such as "coredns". A test that takes another one than that is Long, because the
// others take longer to build than short tests may.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if needsRoot(t); name != "coredns" {
		Long(t)
	}
	path := filepath.Join(Root(t), ".cache", "bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built: run `make .cache/bin/%s` (%v)", name, name, err)
	}
	return path
}

// Root gives the directory of vipgen's own Go module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	Must(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "vipgen-agent")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("this test does not run inside vipgen's module")
		}
		dir = parent
	}
}

// Vipgen and Agent give the project's own programs, as `make build` builds them.
func Vipgen(t testing.TB) string { t.Helper(); return built(t, "vipgen") }

// Agent: see Vipgen.
func Agent(t testing.TB) string { t.Helper(); return built(t, "vipgen-agent") }

// Plugin gives the program of `kubectl vipgen`: see Vipgen.
func Plugin(t testing.TB) string { t.Helper(); return built(t, "kubectl-vipgen") }

// Lab gives the program of the lab, a module of its own: see Vipgen.
func Lab(t testing.TB) string { t.Helper(); return built(t, "lab/vipgen-lab") }

// builds keeps the programs that this process has built.
var builds sync.Map // of name to func() (string, error)

// built builds one of the project's programs once for all packages that are tested:
// Go leaves a program alone that is up to date. Others that run now build one at a
// time, and each keeps what it got when the source changes later.
func built(t testing.TB, name string) string {
	t.Helper()
	root := Root(t)
	once, _ := builds.LoadOrStore(name, sync.OnceValues(func() (string, error) { return build(root, name) }))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("building %s: %v", name, err)
	}
	return path
}

// build builds a program by its name, or by the folder of its module and its name.
func build(root, name string) (string, error) {
	dir := filepath.Join(root, ".cache", "test")
	module, name := filepath.Split(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, name+".lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	// Without -trimpath, which would have all packages compiled again.
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./cmd/"+name)
	command.Dir = filepath.Join(root, module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}
