package firstboot

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

const (
	// rebootGap is how long a client may be without an answer while a holder reboots with the
	// settings of OpenShift's own keepalived: the skew time of VRRPv2, and a second for which a
	// kernel keeps a neighbour that it has just confirmed.
	rebootGap = 2 * time.Second
	// anyLoad is a bound for any load.
	anyLoad = time.Minute
	// crossing is how long an address may be seen on two nodes as it moves.
	crossing = 150 * time.Millisecond
)

// TestRemove: nodes with systemd run vipgen with the settings of OpenShift's own keepalived, as
// `vipgen remove` requires. Then vipgen's files and units are removed node by node, as the
// machine-config operator does when the MachineConfigs are deleted, and each node reboots,
// under a client's load. Nothing of vipgen is left.
func TestRemove(t *testing.T) {
	testkit.Only(t, "e2e")
	managed := rig.InstallConfig("192.168.111.0/24", apiVIP.String(), "192.168.111.4", "OpenShiftManagedDefault")
	c := newControlPlane(t, managed, "vrrp: {profile: classic, mode: unicast}", "ingress: [{name: default, nodeSelector: {}}]")
	c.gracefully(false) // as before OpenShift 4.22
	c.awaitBoth()
	c.awaitServers()
	since := time.Now()
	p := c.ask(since)
	holders, err := watch.Start(watch.Config{Network: c.network, Nodes: []*netns.Node{c.nodes[0].Node, c.nodes[1].Node}, VIPs: []netip.Addr{apiVIP}, Since: since})
	c.must(err)
	machine := testkit.StartStopwatch()
	c.must(p.Await(t.Context(), 300))
	machineConfigs, err := filepath.Glob(c.out + "/machineconfigs/*.yaml")
	c.must(err)
	testkit.AwaitWithin(t, rig.Patience, "leave to delete the MachineConfigs", func() bool { return c.removal(machineConfigs...).MayDelete })

	archive := rig.OperatorsArchive(t, operatorsImage)
	for i, n := range c.nodes {
		c.removeFrom(n, i, archive)
		c.must(p.Await(t.Context(), 300))
	}

	late := machine.End()
	result := p.End()
	timeline, err := holders.End()
	c.must(err)
	two := timeline.In(watch.Addresses).SplitBrain(crossing)
	t.Logf("RESULT | remove | %d requests | %d lost | %v without an answer | split brain %v | holders %s | machine late by up to %v",
		len(result.Requests), result.Lost(), result.Outage(), two, strings.Join(timeline.Holders(apiVIP, crossing), " → "), late)
	testkit.Promise(t, "no answer", result.Outage(), rebootGap, anyLoad, late)
	testkit.Promise(t, "split brain", two, crossing, anyLoad, late)
	for _, command := range c.removal().Steps[4].Do {
		if rest, ok := strings.CutPrefix(command, "on each node: "); ok {
			for _, n := range c.nodes {
				n.mustRun("sh", "-c", rest)
				n.checkRemoved()
			}
		}
	}
}

// removal is the output of `vipgen remove`.
type removal struct {
	MayDelete bool
	Steps     []struct{ Do []string }
}

// export holds the cluster's objects except for vipgen's MachineConfigs, for `vipgen remove`.
const export = `apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: master}
status: {machineCount: 2}
---
apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
status:
  apiServerInternalURI: https://api-int.demo.example.com:6443
  platformStatus:
    type: BareMetal
    baremetal:
      apiServerInternalIPs: [192.168.111.5]
      ingressIPs: [192.168.111.4]
      loadBalancer: {type: OpenShiftManagedDefault}
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata:
  name: 00-master
  labels: {machineconfiguration.openshift.io/role: master}
  annotations: {machineconfiguration.openshift.io/generated-by-controller-version: 00000000000000000000000000000000000000aa}
spec:
  config: %s
---
%s`

// removal runs `vipgen remove` with the current Nodes, and files of MachineConfigs.
func (c *controlPlane) removal(machineConfigs ...string) (r removal) {
	c.t.Helper()
	text := fmt.Sprintf(export, operatorConfig(c.t, nil), c.kubectl("get", "nodes", "-o", "yaml"))
	for _, file := range machineConfigs {
		data, err := os.ReadFile(file)
		c.must(err)
		text += "\n---\n" + string(data)
	}
	var complaint bytes.Buffer
	cmd := exec.Command(testkit.Vipgen(c.t), "remove", "-o", "json", c.write("export.yaml", text))
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		c.t.Fatalf("%v: %s%s", err, &complaint, out)
	}
	c.must(json.Unmarshal(out, &r))
	return r
}

// removeFrom changes a node as the machine-config operator does when vipgen's MachineConfig of
// its pool is deleted (pkg/daemon/update.go): the operator's files and units of the same name
// return, the others are removed, their directories stay, and the node reboots.
func (c *controlPlane) removeFrom(n *node, i int, archive string) {
	c.t.Helper()
	c.give(n, archive)
	n.mustRun("ctr", "--namespace", "k8s.io", "images", "import", imageDir+"/"+filepath.Base(filepath.Dir(archive))+".tar")

	ours := c.bundle(c.rendered)
	operators := c.bundle(operatorConfig(c.t, c.files(n.Name, controlAddr(i))))
	files, units := map[string]ignition.File{}, map[string]ignition.Unit{}
	for _, f := range operators.Files {
		files[f.Path] = f
	}
	for _, u := range operators.Units {
		units[u.Name] = u
	}
	for _, u := range ours.Units {
		back, has := units[u.Name]
		if !has {
			c.t.Fatalf("%s is a unit of vipgen's alone", u.Name)
		}
		c.must(n.Write(host.UnitDir+"/"+u.Name, []byte(back.Contents)))
		// Like operators before OCPBUGS-33694, which do not first disable it by its old
		// contents.
		n.mustRun("systemctl", map[bool]string{true: "enable", false: "disable"}[*back.Enabled], u.Name)
	}
	c.installOperators(n, i)
	c.must(n.Write(v1alpha1.ManifestDir+"/coredns.yaml", []byte(rig.OperatorsCoreDNS("openshift-kni-infra", "localhost/coredns:1"))))
	c.must(n.Write(v1alpha1.Corefile, []byte(rig.OperatorsCorefile(apiVIP, "demo.example.com", siteAddr))))
	for _, f := range ours.Files {
		back, has := files[f.Path]
		now, err := n.Read(f.Path)
		c.must(err)
		switch {
		case has:
			c.must(n.WriteMode(f.Path, back.Contents, os.FileMode(back.Mode)))
		case bytes.Equal(now, f.Contents): // otherwise it is already the operator's
			c.must(os.Remove(n.Path(f.Path)))
		}
	}
	began := time.Now()
	n.mustRun("systemctl", "reboot")
	select {
	case <-n.Ended():
	case <-time.After(rig.Patience):
		c.t.Fatalf("%s has not ended", n.Name)
	}
	n.off()
	c.powerOn(n)
	c.awaitBoth()
	c.awaitServers()
	c.t.Logf("%s runs OpenShift's own keepalived after %v", n.Name, time.Since(began).Round(time.Second))
}

// bundle has the files and units of an Ignition config.
func (c *controlPlane) bundle(config []byte) ignition.Bundle {
	c.t.Helper()
	list, err := ignition.Decode("master.ign", config)
	c.must(err)
	if len(list) != 1 {
		c.t.Fatalf("%d configs in one", len(list))
	}
	return list[0].Bundle()
}

// mustRun runs a program on the node.
func (n *node) mustRun(name string, args ...string) {
	n.t.Helper()
	if out, err := n.Output(n.t.Context(), name, args...); err != nil {
		n.t.Fatalf("%s: %s %s: %v: %s", n.Name, name, strings.Join(args, " "), err, out)
	}
}

// checkRemoved: nothing of vipgen is left except for other programs' data: logs, and images
// until kubelet's garbage collection.
func (n *node) checkRemoved() {
	n.t.Helper()
	testkit.Equal(testkit.In(n.t, n.Name), "", n.run("systemctl", "list-units", "--failed", "--plain", "--no-legend"))
	const (
		where  = "/etc /opt /root /run /srv /tmp /usr/local /var"
		except = "/var/log /var/lib/containers /var/lib/containerd /run/containerd"
	)
	find := fmt.Sprintf("find %s -path %s -prune -o", where, strings.ReplaceAll(except, " ", " -prune -o -path "))
	for what, command := range map[string]string{
		"of that name":    find + ` -iname '*vipgen*' -print`,
		"that mention it": find + ` -type f -exec grep -liI vipgen {} +`,
	} {
		testkit.Equal(testkit.In(n.t, n.Name, what), "", n.run("sh", "-c", command+" || true"))
	}
	testkit.Lacks(testkit.In(n.t, n.Name), n.run("nft", "list", "tables"), "vipgen")
	if got := n.run("ps", "-eo", "args"); got == "" || strings.Contains(got, "vipgen") {
		n.t.Errorf("%s: processes are left, or none are seen:\n%s", n.Name, got)
	}
}
