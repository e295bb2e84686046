package agents

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/templates/unit"
)

// newUnit prepares the first container of a rendered unit.
func newUnit(n node, name string) *service {
	n.t.Helper()
	n.install()
	configs, err := container.UnitContainers(n.Host, images(n.t), name)
	testkit.Must(n.t, err)
	s := &service{node: n}
	s.setConfig(configs[0])
	return s
}

// install puts the rendered units on the node.
func (n node) install() {
	n.t.Helper()
	units, err := unit.Render(unit.Params{AgentImage: agentImage, Hints: []string{"NODEIP_HINT"}})
	testkit.Must(n.t, err)
	for _, u := range units {
		n.put(host.UnitDir+"/"+u.Name, u.Contents)
	}
}

// runUnit runs the unit's command lines unchanged.
func (n node) runUnit(name string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), waitTime)
	defer cancel()
	out, err := container.RunUnit(ctx, n.Host, images(n.t), name)
	testkit.Check(n.t, err)
	n.t.Log(out)
}

func TestUnitsRunUnchanged(t *testing.T) {
	t.Parallel()
	// With a VIP left by an unclean exit.
	h := newNode(t, "192.0.2.5/24", "192.0.2.10/24", "2001:db8:0:1::10/64")
	h.install()
	h.put("/run/NetworkManager/resolv.conf", "search example.com\nnameserver 192.0.2.10\nnameserver 192.0.2.53\n")
	h.put("/etc/resolv.conf", "nameserver 192.0.2.53\n")

	h.runUnit("nodeip-configuration.service")
	if got := h.forwarding("eth0"); got != "1 1" { // hard case 34
		t.Errorf("forwarding of IPv4 and IPv6 is %s", got)
	}
	h.expect(v1alpha1.NodeIPDir+"/primary-ip", "192.0.2.10")
	h.expect(v1alpha1.NodeIPDir+"/ipv6", "2001:db8:0:1::10")
	h.expect("/etc/systemd/system/kubelet.service.d/20-nodenet.conf", "[Service]\nEnvironment=\"KUBELET_NODE_IP=192.0.2.10\" \"KUBELET_NODE_IPS=192.0.2.10,2001:db8:0:1::10\"\n")
	h.expect("/etc/systemd/system/crio.service.d/20-nodenet.conf", "[Service]\nEnvironment=\"CONTAINER_STREAM_ADDRESS=192.0.2.10\"\n")

	h.put("/run/resolv-prepender/env", "IP4_DOMAINS=dhcp.example\nIP6_DOMAINS=\n")
	h.runUnit("on-prem-resolv-prepender.service")
	h.expect("/etc/resolv.conf", "# Written by vipgen-agent resolv-conf from NetworkManager's resolv.conf.\n"+
		"search dual.example.com example.com dhcp.example\nnameserver 192.0.2.10\nnameserver 192.0.2.53\n")
	h.expect("/run/resolv-prepender-kni-conf-done", "")
}

// forwarding returns the settings of an interface, for both families.
func (n node) forwarding(link string) string {
	n.t.Helper()
	var out []string
	for _, family := range []string{"ipv4", "ipv6"} {
		err := n.Do(func() error {
			data, err := os.ReadFile("/proc/sys/net/" + family + "/conf/" + link + "/forwarding")
			out = append(out, strings.TrimSpace(string(data)))
			return err
		})
		testkit.Must(n.t, err)
	}
	return strings.Join(out, " ")
}

// TestNodeIPShow: a missing family is a finding, and an invalid hint of OpenShift's
// /etc/default/nodeip-configuration a bad input.
func TestNodeIPShow(t *testing.T) {
	t.Parallel()
	u := newUnit(newNode(t, "192.0.2.10/24"), "nodeip-configuration.service")
	show := func(args ...string) (string, string, int) {
		return u.run(append([]string{"/usr/bin/vipgen-agent", "node-ip", "show", "--root=/host"}, args...)...)
	}
	out, errOut, code := show()
	if out != "192.0.2.10\n" || code != command.Finding || !strings.Contains(errOut, "family=IPv6") {
		t.Errorf("printed %q, logged %q, exit code %d; want the IPv4 address, a warning and %d", out, errOut, code, command.Finding)
	}
	u.address("2001:db8:0:1::10/64")
	out, errOut, code = show()
	if out != "192.0.2.10\n2001:db8:0:1::10\n" || code != command.OK || errOut != "" {
		t.Errorf("printed %q, logged %q, exit code %d", out, errOut, code)
	}
	u.cfg.Env = []string{"NODEIP_HINT=worker-0"}
	if _, errOut, code = show(); code != command.Input || !strings.Contains(errOut, "worker-0") {
		t.Errorf("an invalid hint: logged %q, exit code %d", errOut, code)
	}
}
