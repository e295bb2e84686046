package firstboot

import (
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

// Hard case 57: the commands of the runbook of VipgenSplitBrain release the VIP on a holder,
// last over a restart of the pod and a reboot, can be undone, and do not change the files of
// the MachineConfigs, which the machine config daemon verifies.
func TestHardCase57TakenOut(t *testing.T) {
	c := newControlPlane(t, installConfig)
	c.gracefully(false)
	c.awaitBoth()
	holder, other := c.holder()
	c.checkFiles(holder)

	holder.mustRun("sh", "-c", "echo 'without: ["+holder.Name+"]' | tee "+v1alpha1.UserModeFile)
	c.awaitHolder(other)
	c.checkFiles(holder)

	since := time.Now()
	holder.killKeepalivedPod()
	holder.awaitTakenOut(since)
	c.awaitHolder(other)

	holder.run("systemctl", "reboot")
	select {
	case <-holder.Ended():
	case <-time.After(rig.Patience):
		t.Fatalf("%s has not ended", holder.Name)
	}
	holder.off()
	c.powerOn(holder)
	holder.awaitTakenOut(c.booted[holder])
	c.awaitHolder(other)
	c.checkFiles(holder)

	// It takes part again: the VIP returns when the other node is excluded.
	holder.mustRun("rm", v1alpha1.UserModeFile)
	c.awaitBoth()
	other.mustRun("sh", "-c", "echo 'without: ["+other.Name+"]' | tee "+v1alpha1.UserModeFile)
	c.awaitHolder(holder)
	other.mustRun("rm", v1alpha1.UserModeFile)
	c.awaitBoth()
	for _, n := range c.nodes {
		c.checkFiles(n)
	}
}

// awaitHolder waits until a node alone has the VIP.
func (c *controlPlane) awaitHolder(want *node) {
	c.t.Helper()
	testkit.AwaitWithin(c.t, rig.Patience, want.Name+" to hold the VIP alone", func() bool {
		at, _ := c.holder()
		return at == want
	})
}

// awaitTakenOut waits until the agent logs, since a time, that its mode file excludes it.
func (n *node) awaitTakenOut(since time.Time) {
	n.t.Helper()
	var log string
	testkit.AwaitWithin(n.t, rig.Patience, n.Name+" to report that it takes no part", func() bool {
		log = n.podLog(since, "keepalived", "keepalived")
		return strings.Contains(log, vrrp.LeftOutByModeFile.Text())
	}, func() string { return tail(log) })
	if n.has(apiVIP) {
		n.t.Errorf("%s has the VIP", n.Name)
	}
}

// killKeepalivedPod makes kubelet restart the pod's container.
func (n *node) killKeepalivedPod() {
	n.t.Helper()
	list := n.run("ctr", "--namespace", "k8s.io", "containers", "list")
	for line := range strings.Lines(list) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], "localhost/keepalived:") {
			n.mustRun("ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", fields[0])
			return
		}
	}
	n.t.Fatalf("%s has no container of keepalived:\n%s", n.Name, list)
}

// checkFiles: the files of vipgen's MachineConfig are on the node, with their contents and
// modes, and apart from them only known files of run time.
func (c *controlPlane) checkFiles(n *node) {
	c.t.Helper()
	laid := map[string]bool{v1alpha1.UserModeFile: true} // by hand
	for _, f := range c.bundle(c.rendered).Files {
		laid[f.Path] = true
		data, err := n.Read(f.Path)
		c.must(err)
		info, err := os.Stat(n.Path(f.Path))
		c.must(err)
		if string(data) != string(f.Contents) || int(info.Mode().Perm()) != f.Mode {
			c.t.Errorf("%s: %s differs from its MachineConfig", n.Name, f.Path)
		}
	}
	for _, dir := range []string{"/etc/keepalived", "/etc/haproxy", "/etc/coredns"} {
		list, err := os.ReadDir(n.Path(dir))
		c.must(err)
		for _, e := range list {
			if file := path.Join(dir, e.Name()); !laid[file] && !testkit.WrittenAtRunTime(file) {
				c.t.Errorf("%s: %s was written", n.Name, file)
			}
		}
	}
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
