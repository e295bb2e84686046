package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// repository is a Git repository with two clusters and the scripts of gitops.
type repository struct {
	*testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, t.TempDir()}
	for _, script := range []string{"render-clusters", "pre-commit"} {
		r.copyFile(filepath.Join("gitops", script), script)
	}
	for _, cluster := range []string{"baremetal", "none"} {
		files, err := filepath.Glob(cluster + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatal("no example", cluster, err)
		}
		for _, f := range files {
			r.copyFile(f, filepath.Join("clusters", f))
		}
	}
	r.copyFile("gitops/fleet.yaml", "fleet.yaml")
	r.must("git", "init", "-q")
	r.must("ln", "-s", "../../pre-commit", ".git/hooks/pre-commit")
	return r
}

func (r repository) copyFile(from, to string) {
	r.Helper()
	data := testkit.ReadFile(r, from)
	info, err := os.Stat(from)
	testkit.Must(r, err)
	r.write(to, data)
	testkit.Must(r, os.Chmod(filepath.Join(r.dir, to), info.Mode()))
}

func (r repository) write(name string, data []byte) {
	r.Helper()
	name = filepath.Join(r.dir, name)
	testkit.WriteFile(r, name, data)
}

// replace changes a file by hand.
func (r repository) replace(name, old, new string) {
	r.Helper()
	data := testkit.ReadFile(r, filepath.Join(r.dir, name))
	changed := strings.Replace(string(data), old, new, 1)
	if changed == string(data) {
		r.Fatalf("%s: no %q", name, old)
	}
	r.write(name, []byte(changed))
}

// run runs a command in the repository with its own Git configuration only.
func (r repository) run(name string, args ...string) (code int, output string) {
	r.Helper()
	self, err := os.Executable()
	testkit.Must(r, err)
	c := exec.Command(name, args...)
	c.Dir = r.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "VIPGEN=" + self, asVipgen + "=1",
		"GIT_CONFIG_NOSYSTEM=1",
		// Git's housekeeping would run in the background, in a directory that is removed.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0", "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com"}
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		r.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func (r repository) must(name string, args ...string) {
	r.Helper()
	if code, out := r.run(name, args...); code != 0 {
		r.Fatalf("%s %v: exit code %d\n%s", name, args, code, out)
	}
}

// expect runs a command that must exit with a code and print a text.
func (r repository) expect(want int, says string, name string, args ...string) {
	r.Helper()
	code, out := r.run(name, args...)
	if code != want || !strings.Contains(out, says) {
		r.Errorf("%s %v: exit code %d, want %d with %q\n%s", name, args, code, want, says, out)
	}
}

func TestGitOps(t *testing.T) {
	const machineConfig = "clusters/baremetal/rendered/machineconfigs/99-worker-vipgen.yaml"
	r := newRepository(t)
	r.expect(1, machineConfig+": missing", "./render-clusters", "--check")
	r.must("./render-clusters")
	r.must("./render-clusters", "--check")
	r.must("git", "add", ".")
	r.must("git", "commit", "-q", "-m", "Render")

	// Drift by hand, staged or not.
	r.replace(machineConfig, "enabled: true", "enabled: false")
	r.expect(1, machineConfig+": differs", "./render-clusters", "--check")
	r.must("git", "commit", "-q", "--allow-empty", "-m", "Something else")
	r.must("git", "add", ".")
	r.expect(1, "pre-commit: run ./render-clusters", "git", "commit", "-q", "-m", "Drift")
	r.must("./render-clusters")
	r.expect(0, "", "git", "diff", "--exit-code", "HEAD")

	// An input changes: the check shows the effect on a node.
	r.replace("clusters/baremetal/install-config.yaml", "192.0.2.6", "192.0.2.7")
	r.expect(1, "+    - 192.0.2.7", "./render-clusters", "--check")
	r.must("./render-clusters")
	r.must("git", "add", ".")
	r.must("git", "commit", "-q", "-m", "Move the ingress VIP")

	// A file that is no longer rendered, and one of another program.
	r.write("clusters/none/rendered/README", []byte("mine\n"))
	r.must("rm", "clusters/none/rendered/manifests/role.yaml")
	r.expect(1, "manifests/role.yaml: missing", "./render-clusters", "--check")
	r.must("./render-clusters")
	r.must("cat", "clusters/none/rendered/README")

	r.replace("clusters/none/vipgen.yaml", "198.51.100.6", "198.51.100.5")
	r.expect(2, "[vip-taken]", "./render-clusters", "--check")
}
