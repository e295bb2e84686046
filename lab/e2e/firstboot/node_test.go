package firstboot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

const (
	kubeletStarted = "/var/log/kubelet-started"
	target         = "kubelet-dependencies.target"
)

// installConfig is the install-config of a cluster with one address family.
var installConfig = rig.InstallConfig("192.168.111.0/24", "192.168.111.5", "192.168.111.4", "UserManaged")

// dualStack is an install-config with both families.
var dualStack = strings.NewReplacer(
	"192.168.111.0/24\n", "192.168.111.0/24\n  - cidr: fd2e:6f44:5dd8::/64\n",
	"[192.168.111.5]", "[192.168.111.5, 'fd2e:6f44:5dd8::5']",
	"[192.168.111.4]", "[192.168.111.4, 'fd2e:6f44:5dd8::4']",
).Replace(installConfig)

// node is a control-plane node with its own first process.
type node struct {
	*machine.Machine
	t    *testing.T
	site *site
}

// newNode makes a node with an empty disk, on which Ignition has written the stand-ins of the
// operator, more files by their paths, and over them vipgen's files. Boot starts it for the
// first time.
func newNode(s *site, install string, more map[string]string) *node {
	s.t.Helper()
	return s.addNode("master-0", nil, s.render(install), more)
}

// addNode is newNode for a name, with programs of this machine and rendered files.
func (s *site) addNode(name string, programs map[string]string, rendered []byte, more map[string]string) *node {
	s.t.Helper()
	n := &node{rig.NewSystem(s.t, s.network, name, programs), s.t, s}
	s.t.Cleanup(n.showJournal)
	files := map[string]string{
		"/etc/containers/certs.d/" + registryHost + "/ca.crt": string(s.ca.CertPEM),
		"/var/lib/kubelet/config.json":                        `{"auths": {}}`,
	}
	maps.Copy(files, more)
	// Like the operator: of two files or units of one name the later one stays.
	config, err := json.Marshal(object{"ignition": object{"version": "3.2.0", "config": object{"merge": []object{
		dataURL(operatorConfig(s.t, files)), dataURL(rendered),
	}}}})
	s.must(err)
	s.must(n.Ignite(s.t.Context(), rig.Tool(s.t, "ignition"), config))
	return n
}

// render returns vipgen's rendered config for control-plane nodes.
func (s *site) render(install string) []byte {
	s.t.Helper()
	ignition, err := os.ReadFile(filepath.Join(s.renderAll(install, "images: {agent: "+s.agent+"}"), "ignition/master.ign"))
	s.must(err)
	return ignition
}

// renderAll returns the directory with everything that vipgen renders, with lines of the spec.
func (s *site) renderAll(install string, spec ...string) string {
	s.t.Helper()
	dir := s.t.TempDir()
	input := filepath.Join(dir, "install-config.yaml")
	s.must(os.WriteFile(input, []byte(install), 0o600))
	config := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec:\n  " + strings.Join(spec, "\n  ") + "\n"
	s.must(os.WriteFile(filepath.Join(dir, "vipgen.yaml"), []byte(config), 0o600))
	out := filepath.Join(dir, "out")
	if message, err := exec.Command(testkit.Vipgen(s.t), "render", input, "--format", "ignition,machineconfig", "--dir", out).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, message)
	}
	return out
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// run runs a program on the node and returns its output; nothing if it fails.
func (n *node) run(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	out, err := n.Output(ctx, name, args...)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

// mustRun runs a program on the node.
func (n *node) mustRun(name string, args ...string) {
	n.t.Helper()
	if out, err := n.Output(n.t.Context(), name, args...); err != nil {
		n.t.Fatalf("%s: %s %s: %v: %s", n.Name, name, strings.Join(args, " "), err, out)
	}
}

// read returns a file of the node, even one in memory.
func (n *node) read(path string) string { return n.run("cat", path) }

// active reports whether a unit is active.
func (n *node) active(unit string) bool { return n.run("systemctl", "is-active", unit) == "active" }

// journal returns the log of a unit since the node was booted, with systemd's messages about
// it.
func (n *node) journal(unit string) string {
	return n.run("journalctl", "--boot", "--no-pager", "--output=short-precise", "--unit", unit)
}

// await waits until a file of the node has the wanted content.
func (n *node) await(path, want string) {
	n.t.Helper()
	testkit.AwaitWithin(n.t, testkit.Patience, path+" to be\n"+want, func() bool { return n.read(path) == want }, func() string { return "it is\n" + n.read(path) })
}

// awaitKubelet waits until kubelet has been started once for each line, with the addresses in
// it.
func (n *node) awaitKubelet(lines ...string) {
	n.t.Helper()
	n.await(kubeletStarted, strings.Join(lines, "\n"))
	if !n.active(target) {
		n.t.Errorf("kubelet has started, and %s is not reached", target)
	}
}

// off powers the node off, if it has not ended, and removes the addresses of its links and the
// rules of its network.
func (n *node) off() {
	n.t.Helper()
	for _, link := range []string{"br-ex", "eth0"} {
		n.Run(nil, "ip", "address", "flush", "dev", link) // there may be no br-ex
	}
	testkit.Must(n.t, n.PowerOff())
	n.Run(nil, "ip", "link", "delete", "br-ex")
	n.Run(nil, "nft", "flush", "ruleset")
	rig.CheckTraces(n.t, n.Machine)
}

// showJournal prints the journal of a node of a failed test.
func (n *node) showJournal() {
	if n.t.Failed() {
		cmd := exec.Command("journalctl", "--directory", n.Path("/var/log/journal"), "--no-pager", "--output=short-precise", "--lines=400")
		out, err := cmd.CombinedOutput()
		n.t.Logf("the end of the journal: %v\n%s", err, out)
	}
}
