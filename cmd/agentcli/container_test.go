package agentcli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/lab/netns"
)

// program is vipgen-agent as it is shipped: static.
var program string

func TestMain(m *testing.M) { os.Exit(withProgram(m)) }

func withProgram(m *testing.M) int {
	dir, err := os.MkdirTemp("", "vipgen-agent-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "vipgen-agent")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../vipgen-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building vipgen-agent:", err)
		return 1
	}
	return m.Run()
}

// host is a node: a network namespace and a file system.
type host struct {
	*netns.Node
	network *netns.Network
	t       *testing.T
	root    string
}

func newHost(t *testing.T) host {
	t.Helper()
	n, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	node, err := n.AddNode("node")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return host{node, n, t, rootWith(t, string(cluster))}
}

// put writes a file of the host.
func (h host) put(path, data string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// expect compares a file of the host.
func (h host) expect(path, want string) {
	h.t.Helper()
	got, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil || string(got) != want {
		h.t.Errorf("%s holds %q (%v), want %q", path, got, err, want)
	}
}

// container is the root of a container that has vipgen-agent alone in it, and
// volumes of the host. Nothing else of the machine can be seen from there.
func (h host) container(volumes ...string) string {
	h.t.Helper()
	root := h.t.TempDir()
	h.copyProgram(filepath.Join(root, "usr/bin/vipgen-agent"))
	h.bind("/proc", filepath.Join(root, "proc"), false)
	for _, v := range volumes {
		parts := strings.Split(v, ":")
		if len(parts) < 2 || len(parts) > 3 || len(parts) == 3 && parts[2] != "ro" {
			h.t.Fatalf("what is the volume %q?", v)
		}
		from := filepath.Join(h.root, parts[0])
		if err := os.MkdirAll(from, 0o755); err != nil {
			h.t.Fatal(err)
		}
		h.bind(from, filepath.Join(root, parts[1]), len(parts) == 3)
	}
	return root
}

func (h host) copyProgram(to string) {
	h.t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h host) bind(from, to string, readOnly bool) {
	h.t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		h.t.Fatalf("mounting needs root: %v", err)
	}
	// Before the temporary directory is removed, and what it would reach.
	h.t.Cleanup(func() {
		if err := unix.Unmount(to, unix.MNT_DETACH); err != nil {
			h.t.Error(err)
		}
	})
	if readOnly {
		if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			h.t.Fatal(err)
		}
	}
}

// run executes a command line in the container, on the host's network.
func (h host) run(container string, command ...string) (out, errOut string, code int) {
	h.t.Helper()
	cmd := h.command(context.Background(), container, command...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (h host) command(ctx context.Context, container string, command ...string) *exec.Cmd {
	return h.Command(ctx, "chroot", append([]string{container}, command...)...)
}
