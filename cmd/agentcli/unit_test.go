package agentcli

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/nodeip"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/templates/unit"
)

const image = "registry.example.com/vipgen/agent@sha256:0"

// podman is one of the units' command lines, taken apart.
type podman struct {
	volumes []string
	command []string
}

// podmanLines returns what the rendered unit runs with podman.
func podmanLines(t *testing.T, name string) []podman {
	t.Helper()
	units, err := unit.Render(unit.Params{AgentImage: image, Retry: true})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(units, func(u unit.Unit) bool { return u.Name == name })
	if i < 0 {
		t.Fatalf("no unit %s", name)
	}
	var out []podman
	for line := range strings.Lines(units[i].Contents) {
		if words, ok := strings.CutPrefix(line, "ExecStart=/usr/bin/podman run "); ok {
			out = append(out, parsePodman(t, strings.Fields(words)))
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s runs no podman:\n%s", name, units[i].Contents)
	}
	return out
}

func parsePodman(t *testing.T, words []string) podman {
	t.Helper()
	var p podman
	entry := ""
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "--rm", "--net=host":
		case "--security-opt", "--authfile":
			i++
		case "--volume":
			i++
			p.volumes = append(p.volumes, words[i])
		case "--entrypoint":
			i++
			entry = words[i]
		case image:
			p.command = append([]string{entry}, words[i+1:]...)
			return p
		default:
			t.Fatalf("what is podman's %s?", words[i])
		}
	}
	t.Fatalf("no image in %v", words)
	return p
}

// runUnit runs the unit's command lines as they stand.
func (h host) runUnit(name string) {
	h.t.Helper()
	for _, p := range podmanLines(h.t, name) {
		if _, errOut, code := h.run(h.container(p.volumes...), p.command...); code != exitOK {
			h.t.Errorf("%v: exit code %d:\n%s", p.command, code, errOut)
		}
	}
}

func (h host) address(addrs ...string) {
	h.t.Helper()
	for _, a := range addrs {
		if err := h.AddAddress("eth0", netip.MustParsePrefix(a)); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestUnitsRunAsTheyStand(t *testing.T) {
	h := newHost(t)
	// With a VIP that an unclean exit left behind.
	h.address("192.0.2.5/24", "192.0.2.10/24", "2001:db8:0:1::10/64")
	h.put("/run/NetworkManager/resolv.conf", "search example.com\nnameserver 192.0.2.10\nnameserver 192.0.2.53\n")
	h.put("/etc/resolv.conf", "nameserver 192.0.2.53\n")

	h.runUnit("nodeip-configuration.service")
	h.expect(v1alpha1.NodeIPDir+"/primary-ip", "192.0.2.10")
	h.expect(v1alpha1.NodeIPDir+"/ipv6", "2001:db8:0:1::10")
	h.expect("/etc/systemd/system/kubelet.service.d/20-nodenet.conf", "[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10,2001:db8:0:1::10\"\n")
	h.expect("/etc/systemd/system/crio.service.d/20-nodenet.conf", "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=192.0.2.10\"\n")

	h.runUnit("on-prem-resolv-prepender.service")
	h.expect("/etc/resolv.conf", "# Written by vipgen-agent resolv-conf from NetworkManager's resolv.conf.\n"+
		"search dual.example.com example.com\nnameserver 192.0.2.10\nnameserver 192.0.2.53\n")
	h.expect("/run/resolv-prepender-kni-conf-done", "")
}

func TestNodeIPShow(t *testing.T) {
	h := newHost(t)
	h.address("192.0.2.10/24")
	container := h.container(podmanLines(t, "nodeip-configuration.service")[0].volumes...)
	show := func(args ...string) (string, string, int) {
		return h.run(container, append([]string{"/usr/bin/vipgen-agent", "node-ip", "show"}, args...)...)
	}
	out, errOut, code := show()
	if out != "192.0.2.10\n" || code != exitFinding || !strings.Contains(errOut, "family=IPv6") {
		t.Errorf("printed %q, said %q, exit code %d; want the IPv4 address, a warning and %d", out, errOut, code, exitFinding)
	}
	h.address("2001:db8:0:1::10/64")
	out, errOut, code = show()
	if out != "192.0.2.10\n2001:db8:0:1::10\n" || code != exitOK || errOut != "" {
		t.Errorf("printed %q, said %q, exit code %d", out, errOut, code)
	}
	out, _, code = show("-o", "json")
	var c nodeip.Choice
	if err := json.Unmarshal([]byte(out), &c); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	if len(c.IPs()) != 2 || c.RemoteWorker || c.Addresses[0].Why != "in the network of VIP 192.0.2.5" || len(c.Interfaces) != 1 {
		t.Errorf("said %s", out)
	}
}

// TestSIGTERMEndsAtOnce: a unit that waits for an address can be stopped, and
// leaves nothing half done.
func TestSIGTERMEndsAtOnce(t *testing.T) {
	h := newHost(t)
	p := podmanLines(t, "nodeip-configuration.service")[0]
	cmd := h.command(context.Background(), h.container(p.volumes...), p.command...)
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer guard.Stop()
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting for an address") {
		t.Errorf("said %q, %v", line, err)
	}
	// chroot and nsenter have become the agent by now: the pid is its own.
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("ended as %v, want exit code %d", cmd.ProcessState, exitFailed)
	}
	if left, _ := os.ReadDir(filepath.Join(h.root, v1alpha1.NodeIPDir)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestTimeout(t *testing.T) {
	h := newHost(t)
	p := podmanLines(t, "nodeip-configuration.service")[0]
	_, errOut, code := h.run(h.container(p.volumes...), append(p.command, "--timeout", "10ms")...)
	if code != exitFailed || !strings.Contains(errOut, "waited for 10ms") {
		t.Errorf("exit code %d, said %q", code, errOut)
	}
}

// TestInstall copies the program as an init container does, and runs the copy
// where there is nothing else.
func TestInstall(t *testing.T) {
	h := newHost(t)
	from := h.container("/vipgen:/vipgen")
	if _, errOut, code := h.run(from, "/usr/bin/vipgen-agent", "install", "/vipgen/vipgen-agent"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	path := filepath.Join(h.root, "vipgen/vipgen-agent")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v; want 0755", info.Mode(), err)
	}
	want, err1 := os.ReadFile(program)
	got, err2 := os.ReadFile(path)
	if err1 != nil || err2 != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy is another one (%v, %v)", err1, err2)
	}
	out, errOut, code := h.run(filepath.Dir(path), "/vipgen-agent", "version")
	if code != exitOK || !strings.HasPrefix(out, "vipgen-agent ") {
		t.Errorf("exit code %d, printed %q, said %q", code, out, errOut)
	}
}

func TestProgramIsStatic(t *testing.T) {
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker")
		}
	}
}
