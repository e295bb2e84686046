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

// SearchPath is Debian's path of programs; the PATH of a test may lack the administrator's
// directories.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Run runs a program, which has to succeed, and returns what it prints.
func Run(t testing.TB, c *exec.Cmd) []byte {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatal(c, ": ", err, "\n", string(out))
	}
	return out
}

// Program returns the path of a program from a Debian package. It declares no kind.
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

// Tool returns the path of a program that the Makefile builds at a pinned version, such as
// "coredns". A test that uses another one than that is Long, because the others take longer to
// build than short tests may.
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

// Root returns the directory of vipgen's own Go module.
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

// Vipgen returns the path of vipgen as `make build` builds it, Agent that of vipgen-agent.
func Vipgen(t testing.TB) string { t.Helper(); return built(t, "vipgen") }

// Agent: see Vipgen.
func Agent(t testing.TB) string { t.Helper(); return built(t, "vipgen-agent") }

// Speaker returns the path of vipgen-bgp, the agent with a BGP speaker: see Vipgen.
func Speaker(t testing.TB) string { t.Helper(); return built(t, "vipgen-bgp") }

// Plugin returns the path of the program of `kubectl vipgen`: see Vipgen.
func Plugin(t testing.TB) string { t.Helper(); return built(t, "kubectl-vipgen") }

// Lab returns the path of the lab's program, a module of its own: see Vipgen.
func Lab(t testing.TB) string { t.Helper(); return built(t, "lab/vipgen-lab") }

// builds caches the programs that this process has built.
var builds sync.Map // of name to func() (string, error)

// built builds one of the project's programs once for all packages under test: Go leaves an
// up-to-date program alone. Concurrent tests build one at a time, and each keeps its path when
// the source changes later.
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
	// -trimpath would compile all packages again.
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "./cmd/"+name)
	command.Dir = filepath.Join(root, module)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}
