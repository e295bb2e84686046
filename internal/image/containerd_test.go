package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// containerd is a containerd with its own images, state and socket.
type containerd struct {
	t      *testing.T
	socket string
	ran    int
	flags  []string // additional flags of ctr run
}

// The CRI plugin would need a network configuration; ctr does without it.
const containerdConfig = `version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = %q
[debug]
  level = "error"
`

func startContainerd(t *testing.T) *containerd {
	t.Helper()
	testkit.Live(t)
	dir, err := os.MkdirTemp("", "containerd-") // short: it contains a socket
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &containerd{t: t, socket: filepath.Join(dir, "sock")}
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf(containerdConfig, filepath.Join(dir, "root"), filepath.Join(dir, "state"), c.socket)
	testkit.Must(t, os.WriteFile(config, []byte(text), 0o644))
	p, err := process.Start("containerd", exec.Command("containerd", "--config", config), filepath.Join(dir, "log"))
	if err != nil {
		t.Fatalf("%v: run `make e2e-setup`", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		testkit.Check(t, p.Stop(ctx))
		p.Kill()
		if t.Failed() {
			t.Logf("containerd's log:\n%s", p.Output())
		}
	})
	testkit.Await(t, "containerd to answer", func() bool { _, err := c.try("version"); return err == nil || p.Ended() }, p.Output)
	return c
}

// try runs ctr in the namespace that kubelet's images are in.
func (c *containerd) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ctr", append([]string{"--address", c.socket, "--namespace", "k8s.io"}, args...)...).CombinedOutput()
	return string(out), err
}

func (c *containerd) ctr(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("ctr %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// load imports an image and returns its digest in containerd.
func (c *containerd) load(i *Image) (digest string) {
	c.t.Helper()
	archive := filepath.Join(c.t.TempDir(), "image.tar")
	want, err := i.WriteArchive(archive)
	testkit.Must(c.t, err)
	c.ctr("images", "import", archive)
	for line := range strings.Lines(c.ctr("images", "list", "name=="+i.Name)) {
		if f := strings.Fields(line); f[0] == i.Name {
			if f[2] != want.String() {
				c.t.Errorf("containerd knows %s as %s, not %s", i.Name, f[2], want)
			}
			return f[2]
		}
	}
	c.t.Fatalf("containerd has no %s", i.Name)
	return ""
}

// mount is a directory of this machine in a container.
func mount(from, to, mode string) string {
	return "type=bind,src=" + from + ",dst=" + to + ",options=rbind:" + mode
}

// run runs a program in a container with a read-only image, and returns its output.
func (c *containerd) run(image string, mounts []string, args ...string) (string, error) {
	c.ran++
	all := append([]string{"run", "--rm", "--read-only"}, c.flags...)
	for _, m := range mounts {
		all = append(all, "--mount", m)
	}
	return c.try(append(append(all, image, fmt.Sprint("test-", c.ran)), args...)...)
}

// asRoot returns the same image with the user that pods set: ctr 1.6 has no flag for it.
func asRoot(i *Image) *Image {
	root := *i
	root.Name += "-as-root"
	root.Config.User = "0:0"
	return &root
}

// TestContainerd has the real containerd import every image under the name in the manifests,
// and runs its programs.
func TestContainerd(t *testing.T) {
	c := startContainerd(t)
	own := vipgenImage(t)
	daemons := daemonImages(t)
	for _, i := range append([]*Image{own}, daemons...) {
		c.load(i)
		c.load(asRoot(i))
	}
	keepalived, haproxy, coredns := daemons[0].Name, daemons[1].Name, daemons[2].Name

	expect := func(image string, mounts []string, want string, args ...string) {
		t.Helper()
		out, err := c.run(image, mounts, args...)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q: %v, want %q\n%s", image, args, err, want, out)
		}
	}
	// With the image's own user.
	expect(own.Name, nil, "vipgen v1.2.3-test", "vipgen", "version")
	expect(own.Name, nil, "vipgen-agent v1.2.3-test", "/usr/bin/vipgen-agent", "version")
	expect(keepalived, nil, "Keepalived v", "keepalived", "--version")
	expect(haproxy, nil, "HAProxy version", "haproxy", "-v")
	expect(coredns, nil, "CoreDNS-", "coredns", "-version")
	examples, err := filepath.Abs(filepath.Join(top, "examples/baremetal"))
	testkit.Must(t, err)
	expect(own.Name, []string{mount(examples, "/cluster", "ro")}, "kind: MachineConfig", "vipgen", "render", "/cluster/install-config.yaml")

	// The command of each pod's init container, and then that of its container.
	volume := t.TempDir()
	if out, err := c.run(own.Name, []string{mount(volume, "/vipgen", "rw")}, "/usr/bin/vipgen-agent", "install", "/vipgen/vipgen-agent"); err == nil {
		t.Errorf("the image's own user wrote into a directory of root's: %s", out)
	}
	expect(own.Name+"-as-root", []string{mount(volume, "/vipgen", "rw")}, "installed", "/usr/bin/vipgen-agent", "install", "/vipgen/vipgen-agent")
	for _, image := range []string{keepalived, haproxy, coredns} {
		expect(image+"-as-root", []string{mount(volume, "/vipgen", "ro")}, "vipgen-agent v1.2.3-test", "/vipgen/vipgen-agent", "version")
	}

	// The daemons' own parsers, with the files of a node: everything that they load at run time
	// exists. keepalived looks for the interface that it names.
	golden, err := filepath.Abs(filepath.Join(top, "golden/cases/baremetal-usermanaged/expected/preview/master-0"))
	testkit.Must(t, err)
	node := daemon.AddNode(t, daemon.NewNetwork(t), "master-0", "192.168.111.20/24")
	mounts := []string{mount(golden, "/conf", "ro"), "type=tmpfs,src=tmpfs,dst=/tmp"}
	c.flags = []string{"--with-ns", "network:/run/netns/" + node.Namespace()}
	out, err := c.run(keepalived+"-as-root", mounts, "keepalived", "--config-test", "--use-file", "/conf/keepalived.conf")
	if err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("keepalived: %v\n%s", err, out)
	}
	if out, err := c.run(haproxy+"-as-root", mounts, "haproxy", "-c", "-q", "-f", "/conf/haproxy.cfg"); err != nil || strings.TrimSpace(out) != "" {
		t.Errorf("haproxy: %v\n%s", err, out)
	}
	c.flags = nil

	testkit.Empty(t, strings.Fields(c.ctr("tasks", "list", "--quiet")))
}
