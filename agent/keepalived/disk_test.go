package keepalived

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// disk is a small file system in the place of a node's directory.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(n *node, path string) disk {
	n.t.Helper()
	d := disk{n.t, n.Path(path)}
	testkit.Must(n.t, os.MkdirAll(d.dir, 0o755))
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size=256k"); err != nil {
		n.t.Fatalf("mounting needs root: %v", err)
	}
	n.t.Cleanup(func() {
		testkit.Check(n.t, unix.Unmount(d.dir, unix.MNT_DETACH))
	})
	return d
}

func (d disk) rubbish() string { return filepath.Join(d.dir, "rubbish") }

func (d disk) fill() {
	d.t.Helper()
	if err := os.WriteFile(d.rubbish(), make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		d.t.Fatalf("the disk is not full: %v", err)
	}
}

// fillUp fills the free space.
func (d disk) fillUp() {
	d.t.Helper()
	more := d.rubbish() + "-more"
	if err := os.WriteFile(more, make([]byte, 1<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		d.t.Fatalf("the disk is not full: %v", err)
	}
}

func (d disk) empty() {
	d.t.Helper()
	for _, name := range []string{d.rubbish(), d.rubbish() + "-more"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			d.t.Fatal(err)
		}
	}
}

func (d disk) readOnly() { d.reconfigure("ro") }
func (d disk) writable() { d.reconfigure("rw") }

// reconfigure changes the file system itself, in every namespace that mounts it.
func (d disk) reconfigure(flag string) {
	d.t.Helper()
	testkit.Await(d.t, "the file system to be "+flag, func() bool {
		fs, err := unix.Fspick(unix.AT_FDCWD, d.dir, 0)
		testkit.Must(d.t, err)
		defer unix.Close(fs)
		err = errors.Join(unix.FsconfigSetFlag(fs, flag), unix.FsconfigReconfigure(fs))
		if err != nil && !errors.Is(err, unix.EBUSY) { // a line of the record is being written
			d.t.Fatal(err)
		}
		return err == nil
	})
}

// valid has keepalived check the file on the node's disk.
func (n *node) valid() {
	n.t.Helper()
	if out, err := n.Run(nil, "keepalived", "-t", "-f", v1alpha1.KeepalivedConf); err != nil || out != "" {
		n.t.Errorf("keepalived does not take the configuration of %s: %v: %s", n.name, err, out)
	}
}

// While no file can be written next to keepalived.conf, the last good one stays in force, also
// over a restart of the agent; then the node applies the latest.
func TestDiskOfTheConfiguration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	tests := []struct {
		name        string
		spoil, mend func(disk)
		want        string
	}{
		{"full", disk.fill, disk.empty, "no space left"},
		{"read-only", disk.readOnly, disk.writable, "read-only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			n := c.add("cp-1", "master", 11)
			c.register(n)
			disk := newDisk(n, "/etc/keepalived")
			n.Write(v1alpha1.ModeFile, c.read(t, "every-pool"+v1alpha1.ModeFile))
			n.Write(keptSettings, []byte(fastUnicast))
			c.list.SetNode("cp-2", "master", c.host(12).Addr().String())
			n.start()
			c.holder("cp-1")
			other := c.add("cp-2", "master", 12)
			other.Write(keptSettings, []byte(fastUnicast))
			other.start()
			other.awaitState("it runs", running)
			c.holder("cp-1")

			tt.spoil(disk)
			c.list.SetNode("cp-3", "master", c.host(13).Addr().String())
			before := n.awaitState("what is wrong", func(s state.Keepalived) bool { return strings.Contains(s.Problem, tt.want) })
			c.holder("cp-1")
			n.valid()
			n.agent.Kill()
			c.holder("cp-2")
			n.start()
			after := n.awaitState("it runs, and what is wrong", func(s state.Keepalived) bool {
				return s.PID != 0 && strings.Contains(s.Problem, tt.want)
			})
			if after.PID == before.PID {
				t.Errorf("process %d runs on", before.PID)
			}
			n.valid()
			other.agent.Stop()
			c.holder("cp-1")

			tt.mend(disk)
			n.awaitState("the new peer is applied", func(s state.Keepalived) bool {
				conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
				return err == nil && s.Problem == "" && strings.Contains(string(conf), c.host(13).Addr().String())
			})
			c.holder("cp-1")
			n.valid()
			if left, _ := filepath.Glob(n.Path("/etc/keepalived/.*.*.*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Hard case 54: a full /run does not keep the priority of a node that lost its load balancer
// high, and the job stays alive and publishes the change.
func TestHardCase54FullRun(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	c := newCluster(t)
	n := c.add("cp-1", "master", 11)
	disk := newDisk(n, v1alpha1.RunDir)
	other := c.add("cp-2", "master", 12)
	for _, x := range []*node{n, other} {
		c.register(x)
		x.Write(keptSettings, []byte(fastUnicast))
	}
	n.start()
	c.holder("cp-1")
	stop := n.serve(9444)
	n.awaitState("HAProxy counts", func(s state.Keepalived) bool { return len(s.Instances) == 1 && s.Instances[0].Priority == 45 })
	other.serve(9444)
	other.start()
	other.awaitState("HAProxy counts", func(s state.Keepalived) bool { return len(s.Instances) == 1 && s.Instances[0].Priority == 45 })
	c.holder("cp-1")
	disk.fill()
	n.unready()
	stop()
	c.holder("cp-2")
	before := n.awaitState("it says so", func(s state.Keepalived) bool { return s.Instances[0].Priority == 40 })
	if out, err := n.probe(); err != nil {
		t.Errorf("the probe while /run is full: %v: %s", err, out)
	}
	// The same without a previous file whose space could be reused.
	testkit.Must(t, os.Remove(n.Path(v1alpha1.JobDir("keepalived")+"/state.json")))
	disk.fillUp()
	c.list.SetNode("cp-3", "master", c.host(13).Addr().String()) // makes the job publish
	if out, err := n.probe(); err != nil {
		t.Errorf("the probe of a job without a state: %v: %s", err, out)
	}
	disk.empty()
	after := n.awaitState("it is there again", func(s state.Keepalived) bool { return s.Instances[0].Priority == 40 })
	if before.PID != after.PID {
		t.Errorf("keepalived was restarted: %d, %d before", after.PID, before.PID)
	}
	c.holder("cp-2")
}
