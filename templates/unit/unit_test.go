package unit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

const image = "registry.example.com/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000"

func rendered(t *testing.T) map[string]string {
	t.Helper()
	units, err := Render(Params{AgentImage: image, AuthFile: "/var/lib/kubelet/config.json", Hints: []string{"NODEIP_HINT", "KUBELET_NODEIP_HINT"}})
	testkit.Must(t, err)
	out := map[string]string{}
	for _, u := range units {
		out[u.Name] = u.Contents
		if !u.Enabled || !strings.Contains(u.Contents, "\n[Install]\n") {
			t.Errorf("%s is enabled: %t\n%s", u.Name, u.Enabled, u.Contents)
		}
	}
	return out
}

func TestRender(t *testing.T) {
	units := rendered(t)
	if len(units) != 3 || units["on-prem-resolv-prepender.path"] == "" {
		t.Errorf("%d units", len(units))
	}
	for _, name := range []string{"nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
		u := units[name]
		testkit.Contains(testkit.In(t, name), u, " "+image+" ")
		// The image's own user may not write to the host (docs/install.md).
		testkit.Contains(testkit.In(t, name), u, " --user 0:0 ")
		if strings.ContainsAny(u, "%$`") || strings.Contains(strings.ReplaceAll(u, "\\\n", ""), "\\") {
			t.Errorf("%s has specifiers, variables or escapes:\n%s", name, u)
		}
		// systemd 239 refuses Restart= in oneshot services, and ignores ExecCondition=.
		testkit.Lacks(testkit.In(t, name), u, "\nRestart", "\nExecCondition")
	}
}

// TestHardCase47Hints: the unit passes valid hints on, and no others.
func TestHardCase47Hints(t *testing.T) {
	for _, hints := range [][]string{nil, {"NODEIP_HINT"}, {"NODEIP_HINT", "KUBELET_NODEIP_HINT"}} {
		units, err := Render(Params{AgentImage: image, Hints: hints})
		testkit.Must(t, err)
		script := shell(t, units[0].Contents)
		for _, name := range []string{"NODEIP_HINT", "KUBELET_NODEIP_HINT"} {
			testkit.Equal(testkit.In(t, hints, name, units[0].Contents), slices.Contains(hints, name), strings.Contains(script, " --env "+name+" "))
		}
	}
}

// TestHardCase47Registered: the agent gets kubelet's certificate, and never the key; on the
// first boot there is none, and the unit does not fail.
func TestHardCase47Registered(t *testing.T) {
	_, command, _ := strings.Cut(rendered(t)["nodeip-configuration.service"], "\nExecStartPre=/bin/sh -c '")
	script, _, _ := strings.Cut(command, "'\n")
	const cert = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
	const key = "-----BEGIN EC PRIVATE KEY-----\nREVG\n-----END EC PRIVATE KEY-----\n"
	for pem, want := range map[string]string{"": "", cert + key: cert, key + cert: cert, key: ""} {
		n := newNode(t)
		for _, dir := range []string{"run/nodeip-configuration", "var/lib/kubelet/pki"} {
			testkit.Must(t, os.MkdirAll(filepath.Join(n.dir, dir), 0o755))
		}
		n.put("run/nodeip-configuration/kubelet-server.crt", "from before", 0o644)
		if pem != "" {
			// Kubelet's certificate is a link to the latest one.
			n.put("var/lib/kubelet/pki/kubelet-server-1.pem", pem, 0o600)
			testkit.Must(t, os.Symlink(n.dir+"/var/lib/kubelet/pki/kubelet-server-1.pem", n.dir+"/var/lib/kubelet/pki/kubelet-server-current.pem"))
		}
		out, err := exec.Command("/bin/sh", "-c", strings.NewReplacer(" /var/", " "+n.dir+"/var/", ">/run/", ">"+n.dir+"/run/").Replace(script)).CombinedOutput()
		if got := n.get("run/nodeip-configuration/kubelet-server.crt"); err != nil || len(out) > 0 || got != want {
			t.Errorf("of %q it gets %q, want %q: %v %s", pem, got, want, err, out)
		}
	}
}

// TestVerify: systemd reports nothing about the units.
func TestVerify(t *testing.T) {
	analyze := testkit.Program(t, "systemd-analyze")
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for name, text := range rendered(t) {
		path := filepath.Join(dir, name)
		testkit.WriteFile(t, path, []byte(text))
		args = append(args, path)
	}
	if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

// shell returns the script of a unit's first command, as systemd passes it to /bin/sh: a
// backslash at the end of a line becomes a space (systemd.syntax(7)), and text in single quotes
// is one argument.
func shell(t *testing.T, unit string) string {
	t.Helper()
	_, command, _ := strings.Cut(strings.ReplaceAll(unit, "\\\n", " "), "\nExecStart=/bin/sh -c '")
	script, rest, found := strings.Cut(command, "'")
	if !found || !strings.HasPrefix(rest, "\n") {
		t.Fatalf("no shell in\n%s", unit)
	}
	return script
}

// node is a directory where a unit's script runs, with stand-ins for podman and sleep that
// record their arguments.
type node struct {
	t   *testing.T
	dir string
}

func newNode(t *testing.T) node {
	n := node{t, t.TempDir()}
	for _, dir := range []string{"etc", "run/NetworkManager", "run/resolv-prepender", "bin"} {
		testkit.Must(t, os.MkdirAll(filepath.Join(n.dir, dir), 0o755))
	}
	return n
}

func (n node) put(path, text string, mode os.FileMode) {
	n.t.Helper()
	testkit.Must(n.t, os.WriteFile(filepath.Join(n.dir, path), []byte(text), mode))
}

func (n node) get(path string) string {
	data, _ := os.ReadFile(filepath.Join(n.dir, path))
	return string(data)
}

// run runs a unit's script on the node, with shell code for podman and sleep. It returns the
// recorded actions, one per line.
func (n node) run(unit, podman, sleep string) string {
	n.t.Helper()
	n.put("bin/podman", "#!/bin/sh\necho podman >>"+n.dir+"/log\n"+podman+"\n", 0o755)
	n.put("bin/sleep", "#!/bin/sh\necho sleep \"$1\" >>"+n.dir+"/log\n"+sleep+"\n", 0o755)
	script := strings.NewReplacer("/usr/bin/podman", n.dir+"/bin/podman", " /etc/resolv.conf", " "+n.dir+"/etc/resolv.conf",
		" /run/", " "+n.dir+"/run/", ">/run/", ">"+n.dir+"/run/").Replace(shell(n.t, unit))
	c := exec.CommandContext(n.t.Context(), "/bin/sh", "-c", script)
	c.Env = []string{"PATH=" + n.dir + "/bin:/usr/bin:/bin"}
	c.Dir = n.dir
	testkit.Run(n.t, c)
	return n.get("log")
}

// tries is shell code that fails a number of times, then succeeds.
func tries(fail int) string {
	return "echo x >>tried; [ $(wc -l <tried) -gt " + string(rune('0'+fail)) + " ]"
}

// TestHardCase31: an unreachable registry is no reason to give up.
func TestHardCase31(t *testing.T) {
	for _, name := range []string{"nodeip-configuration.service", "on-prem-resolv-prepender.service"} {
		n := newNode(t)
		n.put("etc/resolv.conf", "nameserver 192.0.2.53\n", 0o644)
		testkit.Equal(testkit.In(t, name), strings.Repeat("podman\nsleep 1\n", 3)+"podman\n", n.run(rendered(t)[name], tries(3), ""))
	}
	// Units that wait for the address wait as long (operator contract).
	u := rendered(t)["nodeip-configuration.service"]
	for _, line := range []string{"RequiredBy=kubelet-dependencies.target", "Type=oneshot"} {
		testkit.Contains(testkit.In(t, line), u, "\n"+line+"\n")
	}
	for _, key := range []string{"TimeoutStartSec", "TimeoutSec", "JobTimeoutSec"} { // a oneshot has none by default
		testkit.Lacks(t, u, key)
	}
}

// TestChangedMeanwhile: a change between the agent's last read and the end of its container is
// not lost, even if NetworkManager writes a resolv.conf without domains and restores the
// previous one, as when br-ex takes over the interface.
func TestChangedMeanwhile(t *testing.T) {
	const change = "[ -e PATH.new ] || { echo x >PATH.new; cp PATH.new PATH; }"
	for _, podman := range []string{
		strings.ReplaceAll(change, "PATH", "run/NetworkManager/resolv.conf"), strings.ReplaceAll(change, "PATH", "run/resolv-prepender/env"),
		"[ -e second ] || { touch second; cp run/NetworkManager/resolv.conf back; mv back run/NetworkManager/resolv.conf; }",
	} {
		n := newNode(t)
		n.put("etc/resolv.conf", "nameserver 192.0.2.10\n", 0o644)
		n.put("run/NetworkManager/resolv.conf", "search lan.example\nnameserver 192.0.2.53\n", 0o644)
		testkit.Equal(testkit.In(t, podman), "podman\nsleep 1\npodman\n", n.run(rendered(t)["on-prem-resolv-prepender.service"], podman, ""))
	}
}

// TestHardCase30: the first resolv.conf exists before the first pull by podman, and uses
// nothing but the network's settings.
func TestHardCase30(t *testing.T) {
	const network = "# of the network\nsearch lan.example\nnameserver 192.0.2.53\n"
	u := rendered(t)["on-prem-resolv-prepender.service"]
	const saw = "cp etc/resolv.conf seen"
	for name, tt := range map[string]struct{ before, want string }{
		"nothing": {"", network}, "an empty one": {"\n", network}, "one that names no server": {"search x.example\n", network},
		"one from before": {"nameserver 192.0.2.10\n", "nameserver 192.0.2.10\n"}, "a comment is no server": {"# nameserver 192.0.2.9\n", network},
		"a link that leads nowhere": {"->", network},
	} {
		n := newNode(t)
		switch tt.before {
		case "":
		case "->":
			testkit.Must(t, os.Symlink("../run/systemd/resolve/stub-resolv.conf", filepath.Join(n.dir, "etc/resolv.conf")))
		default:
			n.put("etc/resolv.conf", tt.before, 0o644)
		}
		n.put("run/NetworkManager/resolv.conf", network, 0o644)
		testkit.Equal(testkit.In(t, name), "podman\n", n.run(u, saw, ""))
		testkit.Equal(testkit.In(t, name), tt.want, n.get("seen"))
	}
	t.Run("the network is up later", func(t *testing.T) {
		n := newNode(t)
		n.put("later", network, 0o644)
		n.put("run/NetworkManager/resolv.conf", "# nothing yet\n", 0o644)
		// It appears at the unit's third attempt.
		got := n.run(u, saw, "echo x >>slept; [ $(wc -l <slept) -lt 3 ] || cp later run/NetworkManager/resolv.conf")
		testkit.Equal(t, strings.Repeat("sleep 1\n", 3)+"podman\n"+network, got+n.get("seen"))
	})
	t.Run("a network without servers, an image that is here", func(t *testing.T) {
		n := newNode(t)
		n.put("bin/timeout", "#!/bin/sh\nexit 124\n", 0o755) // the minute is over
		testkit.Equal(t, "podman\nsleep 1\npodman\n", n.run(u, tries(1), ""))
	})
	// On the first boot, network-online.target must not wait for units that wait for an image.
	for _, word := range []string{"network-online", "NetworkManager-wait-online", "firstboot"} {
		testkit.Lacks(t, u, word)
	}
}
