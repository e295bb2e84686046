package image

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// podmanConfig makes podman work without systemd and without raising limits, which not every
// machine allows.
const podmanConfig = `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
`

// podman is a podman with its own images.
type podman struct {
	t   *testing.T
	dir string
}

func newPodman(t *testing.T) *podman {
	t.Helper()
	testkit.Live(t)
	if _, err := exec.LookPath("podman"); err != nil {
		t.Fatalf("%v: run `make e2e-setup`", err)
	}
	if os.Geteuid() != 0 {
		t.Fatal("this test needs root")
	}
	dir, err := os.MkdirTemp("", "podman-") // short: it contains sockets
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "containers.conf"), []byte(podmanConfig), 0o644))
	return &podman{t, dir}
}

func (p *podman) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "podman", append([]string{
		"--root", filepath.Join(p.dir, "root"), "--runroot", filepath.Join(p.dir, "run"),
		"--tmpdir", filepath.Join(p.dir, "tmp"), "--storage-driver", "vfs",
	}, args...)...)
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(p.dir, "containers.conf"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestUnitUnderPodman has the real podman load the archive and run the command of a rendered
// unit, on a host that is a directory. The image's own user may not, without the user that the
// unit sets.
func TestUnitUnderPodman(t *testing.T) {
	p := newPodman(t)
	archive, _ := open(t, vipgenImage(t))
	if out, err := p.run("load", "--input", archive); err != nil || !strings.Contains(out, vipgenImage(t).Name) {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := p.run("run", "--rm", "--net=host", vipgenImage(t).Name, "version"); err != nil || !strings.Contains(out, "vipgen v1.2.3-test") {
		t.Errorf("%v\n%s", err, out)
	}

	root := filepath.Join(p.dir, "host")
	rendered := os.DirFS(filepath.Join(top, "golden/cases/baremetal-usermanaged/expected/files/every-pool"))
	testkit.Must(t, os.CopyFS(root, rendered))
	for name, text := range map[string]string{
		"run/NetworkManager/resolv.conf":      "nameserver 192.0.2.53\n",
		"run/nodeip-configuration/primary-ip": "192.168.111.20",
		"run/nodeip-configuration/ipv4":       "192.168.111.20",
		"etc/resolv.conf":                     "nameserver 192.0.2.53\n",
		"var/lib/kubelet/config.json":         "{}",
	} {
		testkit.Must(t, writeFile(filepath.Join(root, name), strings.NewReader(text)))
	}
	// The host's network is a node's.
	node := daemon.AddNode(t, daemon.NewNetwork(t), "master-0", "192.168.111.20/24")
	command := unitCommand(t, filepath.Join(root, "etc/systemd/system/on-prem-resolv-prepender.service"))
	for from, to := range map[string]string{
		" --net=host ":                  " --net=ns:/run/netns/" + node.Namespace() + " ",
		" /etc:/host/etc":               " " + root + "/etc:/host/etc",
		" /run:/host/run":               " " + root + "/run:/host/run",
		" /var/lib/kubelet/config.json": " " + root + "/var/lib/kubelet/config.json",
	} {
		if !strings.Contains(command, from) {
			t.Fatalf("%q lacks %q", command, from)
		}
		command = strings.Replace(command, from, to, 1)
	}
	unprivileged := strings.Replace(command, " --user 0:0", "", 1)
	if out, err := p.run(strings.Fields(unprivileged)...); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("the image's own user: %v\n%s", err, out)
	}
	out, err := p.run(strings.Fields(command)...)
	text := string(testkit.ReadFile(t, filepath.Join(root, "etc/resolv.conf")))
	if err != nil || !strings.Contains(text, "nameserver 192.168.111.20\nnameserver 192.0.2.53\n") {
		t.Errorf("%v\n%s\n%s", err, out, text)
	}
}

// unitCommand returns the podman command of a unit, without the program. The unit retries it
// until it succeeds, in a line of shell.
func unitCommand(t *testing.T, name string) string {
	t.Helper()
	lines := strings.ReplaceAll(string(testkit.ReadFile(t, name)), "\\\n", " ")
	_, command, found := strings.Cut(lines, "/usr/bin/podman ")
	end := strings.IndexAny(command, ";&")
	if !found || end < 0 {
		t.Fatalf("%s runs no podman", name)
	}
	command = command[:end]
	return strings.Join(strings.Fields(command), " ")
}
