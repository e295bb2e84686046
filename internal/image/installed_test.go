package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// bare runs the script $2 in a Debian without Go: the read-only $1, with the files of $3 in
// /root. $4 is an empty directory.
const bare = `
top=$4
mount -t tmpfs tmpfs "$top"
mkdir "$top/upper" "$top/work" "$top/root"
mount -t overlay -o lowerdir="$1",upperdir="$top/upper",workdir="$top/work" overlay "$top/root"
mount --bind "$3" "$top/root/root"
mount -t proc proc "$top/root/proc"
exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$top/root" /bin/bash -euc "cd; $2"
`

// TestInstalled makes a release for this machine's platform, installs it in a bare Debian by
// the commands of docs/install.md, verbatim, runs it there, and has containerd import and run
// its image as on that page.
func TestInstalled(t *testing.T) {
	testkit.Live(t) // containerd
	const version = "v1.2.3"
	release := t.TempDir()
	build := exec.Command("go", "run", "-buildvcs=false", "./cmd/image", "release",
		"--source", top, "--version", version, "--output", release, "--archives", Here().String(), "--platforms", Here().String())
	testkit.Run(t, build)
	page := string(testkit.ReadFile(t, filepath.Join(top, "docs/install.md")))
	install := regexp.MustCompile("(?s)To install a release:\n\n```sh\n(.*?)```").FindStringSubmatch(page)
	if install == nil || !strings.Contains(install[1], "v1.2.3") {
		t.Fatal("docs/install.md has no commands to install a release")
	}
	system, err := filepath.EvalSymlinks(filepath.Join(top, ".cache/system"))
	if err != nil {
		t.Fatalf("%v: run 'make .cache/system'", err)
	}
	home := t.TempDir()
	for from, to := range map[string]string{release: home, filepath.Join(top, "examples/baremetal"): filepath.Join(home, "cluster")} {
		testkit.Must(t, os.CopyFS(to, os.DirFS(from)))
	}
	script := "! command -v go\nsudo() { \"$@\"; }\n" + strings.ReplaceAll(install[1], "amd64", runtime.GOARCH) + `
cd /root
vipgen version
vipgen-agent version
vipgen render cluster/install-config.yaml --dir rendered
vipgen explain cluster/install-config.yaml
. /usr/share/bash-completion/completions/vipgen
complete -p vipgen
ls -l /usr/local/share/man/man1/vipgen-lab-up.1
`
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "bash", "-euc", bare, "bare", system, script, home, t.TempDir())
	out, err := cmd.CombinedOutput()
	t.Logf("in a bare Debian:\n%.3000s", out)
	testkit.Check(t, err)
	testkit.Contains(t, string(out), "linux-"+runtime.GOARCH+".tar.gz: OK", "vipgen "+version, "vipgen-agent "+version, "WITHOUT A HOLDER", "complete -o default -F __start_vipgen vipgen")
	if _, err := os.Stat(filepath.Join(home, "rendered/machineconfigs/99-master-vipgen.yaml")); err != nil {
		t.Error(err)
	}

	c := startContainerd(t)
	for _, command := range regexp.MustCompile(`(?m)^ctr --namespace k8s.io (images import .*)$`).FindAllStringSubmatch(page, -1) {
		args := strings.Fields(command[1])
		args[len(args)-1] = filepath.Join(release, args[len(args)-1])
		t.Logf("ctr %s", c.ctr(args...))
	}
	list := strings.Fields(c.ctr("images", "list", "--quiet"))
	pinned := strings.TrimSpace(string(testkit.ReadFile(t, filepath.Join(release, "vipgen-agent.digest"))))
	if !slices.Contains(list, pinned) {
		t.Errorf("containerd has %v, not %s", list, pinned)
	}
	for _, image := range list {
		for _, program := range []string{"vipgen", "vipgen-agent"} {
			out, err := c.run(image, nil, program, "version")
			t.Logf("%s: %s", image, out)
			if err != nil || !strings.HasPrefix(out, program+" "+version) {
				t.Errorf("%s in %s: %v\n%s", program, image, err, out)
			}
		}
	}
}

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

// run runs a program in a container with a read-only image, and returns its output.
func (c *containerd) run(image string, mounts []string, args ...string) (string, error) {
	c.ran++
	all := append([]string{"run", "--rm", "--read-only"}, c.flags...)
	for _, m := range mounts {
		all = append(all, "--mount", m)
	}
	return c.try(append(append(all, image, fmt.Sprint("test-", c.ran)), args...)...)
}
