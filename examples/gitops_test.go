package examples_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

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
	testkit.WriteFile(r, filepath.Join(r.dir, name), data)
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

// command returns a command in the repository, with its own Git configuration only.
func (r repository) command(name string, args ...string) *exec.Cmd {
	r.Helper()
	self, err := os.Executable()
	testkit.Must(r, err)
	c := exec.Command(name, args...)
	c.Dir = r.dir
	c.Env = []string{"PATH=" + r.dir + ":" + os.Getenv("PATH"), "HOME=" + r.dir, "VIPGEN=" + self, asVipgen + "=1",
		"GIT_CONFIG_NOSYSTEM=1",
		// Git's housekeeping would run in the background, in a directory that is removed.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0", "GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com"}
	return c
}

func (r repository) run(name string, args ...string) (code int, output string) {
	r.Helper()
	c := r.command(name, args...)
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

// output runs a command in the repository and returns its standard output.
func (r repository) output(name string, args ...string) string {
	r.Helper()
	var errOut bytes.Buffer
	c := r.command(name, args...)
	c.Stderr = &errOut
	out, err := c.Output()
	testkit.Must(testkit.In(r, name, args, errOut.String()), err)
	return string(out)
}

func documents(stream string) []string {
	return strings.Split(strings.TrimPrefix(stream, "---\n"), "\n---\n")
}

// The function, run by the real kustomize: MachineConfigs have the same bytes as those of
// vipgen render, and the result equals kustomize's output for a rendered tree with its
// kustomization.yaml. (kustomize formats lists and comments of the other manifests in its own
// way.)
func TestKustomizeFunction(t *testing.T) {
	r := repository{t, t.TempDir()}
	for _, name := range []string{"kustomization.yaml", "demo.yaml", "vipgen-fn"} {
		r.copyFile("gitops/kustomize/"+name, name)
	}
	r.copyFile("baremetal/install-config.yaml", "install-config.yaml")
	r.write("vipgen.yaml", []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {openshiftVersion: \"4.18\"}\n"))
	built := r.output(testkit.Tool(t, "kustomize"), "build", "--enable-alpha-plugins", "--enable-exec", ".")

	self := r.output("sh", "-c", `"$VIPGEN" render install-config.yaml`)
	want, got := documents(self), documents(built)
	if len(want) != len(got) {
		t.Fatalf("%d objects, want %d", len(got), len(want))
	}
	configs := 0
	for i := range want {
		if strings.Contains(want[i], "\nkind: MachineConfig\n") {
			configs++
			testkit.Equal(testkit.In(t, "MachineConfig", i), want[i], got[i])
		}
	}
	testkit.Equal(t, 2, configs)
	r.output("sh", "-c", `"$VIPGEN" render install-config.yaml --dir tree --kustomization`)
	fromTree := r.output(testkit.Tool(t, "kustomize"), "build", "tree")
	sorted := strings.Replace(string(testkit.ReadFile(t, "gitops/kustomize/kustomization.yaml")), "sortOptions:\n  order: fifo\n", "", 1)
	r.write("kustomization.yaml", []byte(sorted))
	testkit.Equal(t, fromTree, r.output(testkit.Tool(t, "kustomize"), "build", "--enable-alpha-plugins", "--enable-exec", "."))
}

// The plugin, run as Argo CD's server for plugins does: discover by file name,
// generate in the folder of the application.
func TestArgoCDPlugin(t *testing.T) {
	var plugin struct {
		Kind string
		Spec struct {
			Discover struct{ FileName string }
			Generate struct{ Command []string }
		}
	}
	if err := yaml.Unmarshal(testkit.ReadFile(t, "gitops/argocd/plugin.yaml"), &plugin); err != nil || plugin.Kind != "ConfigManagementPlugin" {
		t.Fatalf("%+v, %v", plugin, err)
	}
	r := repository{t, t.TempDir()}
	r.copyFile("baremetal/install-config.yaml", "install-config.yaml")
	r.copyFile("baremetal/vipgen.yaml", "vipgen.yaml")
	if found, err := filepath.Glob(filepath.Join(r.dir, plugin.Spec.Discover.FileName)); err != nil || len(found) != 1 {
		t.Errorf("discovers %v, %v", found, err)
	}
	r.inPath()
	got := r.output("env", plugin.Spec.Generate.Command...)
	if want := r.output("sh", "-c", `"$VIPGEN" render .`); got != want || !strings.Contains(got, "kind: MachineConfig\n") {
		t.Errorf("generates\n%.500s", got)
	}
}

// inPath makes vipgen available in the PATH of output.
func (r repository) inPath() {
	r.Helper()
	r.write("vipgen", []byte("#!/bin/sh\nexec \"$VIPGEN\" \"$@\"\n"))
	testkit.Must(r, os.Chmod(filepath.Join(r.dir, "vipgen"), 0o755))
}

// TestCI runs the steps of the GitHub Action and of the GitLab component by a shell in a
// repository with a change. Left out are building vipgen, and commenting on GitHub.
func TestCI(t *testing.T) {
	var action struct {
		Runs struct {
			Steps []struct{ Name, Run string }
		}
	}
	testkit.Must(t, yaml.Unmarshal(testkit.ReadFile(t, "../action.yml"), &action))
	_, jobs, _ := bytes.Cut(testkit.ReadFile(t, "../templates/vipgen.yml"), []byte("---\n"))
	var component map[string]struct{ Script []string }
	testkit.Must(t, yaml.Unmarshal(jobs, &component))
	scripts := map[string][]string{"GitLab": component["vipgen"].Script}
	for _, s := range action.Runs.Steps {
		if s.Run != "" && s.Name != "Build" && s.Name != "Comment" {
			scripts["GitHub"] = append(scripts["GitHub"], s.Run)
		}
	}
	comments := make(chan string, 1)
	gitlab := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		comments <- r.URL.Path + " " + r.Header.Get("PRIVATE-TOKEN") + "\n" + r.FormValue("body")
	}))
	defer gitlab.Close()
	const vars = "PATH=.:$PATH CLUSTERS=clusters BASE=base VIPGEN_TOKEN=token CI_PROJECT_ID=3 CI_MERGE_REQUEST_IID=5\n"
	for name, steps := range scripts {
		t.Run(name, func(t *testing.T) {
			if len(steps) < 4 {
				t.Fatalf("%d steps: %q", len(steps), steps)
			}
			r := newRepository(t)
			r.must("./render-clusters")
			r.must("git", "add", ".")
			r.must("git", "commit", "-q", "-m", "Render")
			r.must("git", "branch", "base")
			r.replace("clusters/baremetal/install-config.yaml", "192.0.2.6", "192.0.2.7")
			r.must("./render-clusters")
			r.inPath()
			for _, step := range steps {
				r.output("sh", "-e", "-c", vars+"CI_API_V4_URL="+gitlab.URL+"\n"+step)
			}
			comment := string(testkit.ReadFile(t, filepath.Join(r.dir, "vipgen-diff.md")))
			testkit.Contains(t, comment, "| reload by the agent |", "spec.groups[ingress].vips[0]: 192.0.2.6 -> 192.0.2.7")
			if name == "GitLab" {
				testkit.Equal(t, "/projects/3/merge_requests/5/notes token\n"+comment, <-comments)
			}
			r.replace("clusters/baremetal/install-config.yaml", "192.0.2.7", "192.0.2.8")
			if code, _ := r.run("sh", "-e", "-c", vars+steps[1]); code != 1 {
				t.Errorf("drift: exit code %d", code)
			}
			// A warning about a cluster that is not the last one.
			r.replace("clusters/baremetal/vipgen.yaml", "  images:\n", "  images:\n    release: 4.12.1\n    haproxy: registry.example.com/haproxy\n")
			if code, out := r.run("sh", "-e", "-c", vars+steps[0]); code != 1 || !strings.Contains(out, "[other-release]") {
				t.Errorf("warning: exit code %d\n%s", code, out)
			}
		})
	}
}

// TestPreCommitHooks runs the hooks that .pre-commit-hooks.yaml offers, as pre-commit would.
func TestPreCommitHooks(t *testing.T) {
	var hooks []struct {
		ID, Entry, Files string
		Args             []string
	}
	testkit.Must(t, yaml.Unmarshal(testkit.ReadFile(t, "../.pre-commit-hooks.yaml"), &hooks))
	r := newRepository(t)
	r.must("./render-clusters")
	r.inPath()
	for _, h := range hooks {
		_, err := regexp.Compile(h.Files)
		testkit.Check(testkit.In(t, h.ID), err)
		r.output("sh", "-c", "./"+h.Entry+" "+strings.Join(h.Args, " "))
	}
	r.replace("clusters/baremetal/install-config.yaml", "192.0.2.6", "192.0.2.7")
	if code, out := r.run("sh", "-c", "./"+hooks[0].Entry+" "+strings.Join(hooks[0].Args, " ")); code != 1 {
		t.Errorf("%s after a change: exit code %d\n%s", hooks[0].ID, code, out)
	}
}
