package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// sandbox is a directory that a program sees as the root of its file system: the host's
// programs, libraries and devices, and otherwise only a test's files, at their paths on a node.
type sandbox struct {
	dir   string
	binds []string // pairs: path on the host, path in the sandbox
}

// enterSandbox mounts the pairs of paths before "--" below its first argument and executes the
// program named after it. The mounts exist only in its mount namespace.
const enterSandbox = `set -e
root=$1
shift
while [ "$1" != -- ]; do
	mount --rbind "$1" "$root$2"
	shift 2
done
shift
exec chroot "$root" "$@"
`

func newSandbox(t testing.TB) *sandbox { t.Helper(); return newSandboxOf(t, Installed) }

// newSandboxOf makes a sandbox with the programs and libraries of a generation.
func newSandboxOf(t testing.TB, g Generation) *sandbox {
	t.Helper()
	s := &sandbox{dir: t.TempDir()}
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		s.share(t, g.Root(t), dir)
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		s.share(t, "/", dir)
	}
	from := map[string]string{}
	for _, file := range []string{"/etc/passwd", "/etc/group", "/etc/protocols", "/etc/services"} {
		from[file] = file
	}
	// The program's own files; Debian's keepalived 2.3 does not start without the latter.
	for _, file := range []string{"/etc/ld.so.cache", "/etc/keepalived/keepalived.config-opts"} {
		from[file] = filepath.Join(g.Root(t), file)
	}
	for _, file := range slices.Sorted(maps.Keys(from)) {
		data, err := os.ReadFile(from[file])
		if os.IsNotExist(err) {
			continue
		}
		testkit.Must(t, err)
		s.write(t, file, data)
	}
	for _, dir := range []string{"/run", "/tmp", "/var/run"} {
		s.mkdir(t, dir)
	}
	return s
}

// share makes a top-level directory below a root visible, if it exists.
func (s *sandbox) share(t testing.TB, root, dir string) {
	t.Helper()
	from := filepath.Join(root, dir)
	info, err := os.Lstat(from)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		t.Fatal(err)
	case info.Mode()&os.ModeSymlink != 0: // such as /bin -> usr/bin
		target, err := os.Readlink(from)
		if err == nil {
			err = os.Symlink(target, s.path(dir))
		}
		testkit.Must(t, err)
	default:
		s.mkdir(t, dir)
		s.binds = append(s.binds, from, dir)
	}
}

func (s *sandbox) bind(t testing.TB, file, inside string) {
	t.Helper()
	s.write(t, inside, nil)
	s.binds = append(s.binds, file, inside)
}

// path returns the path on the host of a path of the sandbox.
func (s *sandbox) path(path string) string {
	return filepath.Join(s.dir, filepath.Clean("/"+path))
}

func (s *sandbox) mkdir(t testing.TB, path string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(s.path(path), 0o755))
}

// write writes or replaces a file in one step, like an agent on a node.
func (s *sandbox) write(t testing.TB, path string, data []byte) {
	t.Helper()
	s.mkdir(t, filepath.Dir(path))
	fresh := s.path(path) + ".new"
	testkit.Must(t, os.WriteFile(fresh, data, 0o644))
	testkit.Must(t, os.Rename(fresh, s.path(path)))
}

// command returns a command that will run in the sandbox and on the node. Its process is the
// program itself, so that signals reach it.
func (s *sandbox) command(ctx context.Context, node *netns.Node, name string, args ...string) *exec.Cmd {
	cmd := node.Command(ctx, "unshare", s.enter(enterSandbox, name, args, "--mount")...)
	cmd.Env = []string{"PATH=" + testkit.SearchPath}
	return cmd
}

// parser returns a command that will run in the sandbox, in its own network with links of these
// names only: a node would be several times as expensive.
func (s *sandbox) parser(links []string, name string, args ...string) *exec.Cmd {
	var script strings.Builder
	for _, link := range links {
		fmt.Fprintf(&script, "ip link add name '%s' type veth || exit\n", link)
	}
	cmd := exec.Command("unshare", s.enter(script.String()+enterSandbox, name, args, "--mount", "--net")...)
	cmd.Env = []string{"PATH=" + testkit.SearchPath}
	return cmd
}

// enter returns arguments of unshare, for a script that finally executes a program.
func (s *sandbox) enter(script, name string, args []string, namespaces ...string) []string {
	return slices.Concat(namespaces, []string{"--", "/bin/sh", "-c", script, "sandbox", s.dir}, s.binds, []string{"--", name}, args)
}
