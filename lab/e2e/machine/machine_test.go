package machine_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/machine"
	"github.com/vipgen/vipgen/lab/e2e/rig"
)

func output(t *testing.T, m *machine.Machine, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	out, err := m.Output(ctx, name, args...)
	testkit.Must(t, err)
	return strings.TrimRight(out, "\n")
}

func TestMachine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	testkit.Must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$1 here\"\n"), 0o755))
	network := daemon.NewNetwork(t)
	m := rig.NewMachine(t, network, "node-0", "192.0.2.10/24", map[string]string{"greet": program})
	other := rig.NewMachine(t, network, "node-1", "192.0.2.11/24", nil)

	for _, tt := range []struct{ what, want string }{
		{"hostname", "node-0"},
		{"greet hello", "hello here"},
		{"pwd", "/"},
		{"ls /", "bin dev etc lib lib64 opt proc root run sbin sys tmp usr var"},
		{"ls /usr/local /usr/local/bin", "/usr/local: bin /usr/local/bin: greet"},
		{"cat /proc/1/comm", "bash"},
		{"ls /sys/class/net", "eth0 lo"},
		{"readlink /var/run", "../run"},
		{"cat /proc/sys/vm/overcommit_memory /proc/sys/kernel/panic", "1 10"},
		{"stat -c %F /dev/null /dev/kmsg", "character special file character special file"},
		{"stat -c %a /tmp", "1777"},
	} {
		testkit.Equal(testkit.In(t, tt.what), tt.want, strings.Join(strings.Fields(output(t, m, "sh", "-c", tt.what)), " "))
	}
	for line := range strings.Lines(output(t, m, "cat", "/proc/self/cgroup")) {
		if _, path, _ := strings.Cut(strings.TrimSpace(line), ":/"); path != "" {
			t.Errorf("it sees control groups of this machine: %s", line)
		}
	}
	for line := range strings.Lines(output(t, m, "cat", "/proc/self/mounts")) {
		fields := strings.Fields(line)
		if strings.HasPrefix(fields[1], m.Dir()) || strings.HasPrefix(fields[1], "/.old") {
			t.Errorf("it sees mounts of this machine: %s", line)
		}
		if fields[1] == "/usr" && !strings.HasPrefix(fields[3], "ro,") {
			t.Errorf("this machine's /usr can be written to: %s", line)
		}
	}

	// The machine's files are in its directory, and vice versa.
	output(t, m, "sh", "-c", "echo a >/etc/a; mkdir -p /sys/fs/cgroup/pids/kubepods")
	testkit.Must(t, m.Write("/etc/b", []byte("b\n")))
	if got, err := m.Read("/etc/a"); err != nil || string(got) != "a\n" || output(t, m, "cat", "/etc/b") != "b" {
		t.Errorf("its files: %q, %v", got, err)
	}
	if _, err := os.Stat("/sys/fs/cgroup/pids" + m.Cgroup() + "/kubepods"); err != nil {
		t.Error(err)
	}
	reach(t, m, "192.0.2.11")

	testPower(t, m, other)
}

// reach checks that another machine refuses a connection at a closed port.
func reach(t *testing.T, m *machine.Machine, addr string) {
	t.Helper()
	_, err := m.Output(t.Context(), "bash", "-c", ": </dev/tcp/"+addr+"/9")
	testkit.Fails(testkit.In(t, m.Name, addr), err, "Connection refused")
}

// testPower: a power loss of one machine does not affect the other.
func testPower(t *testing.T, m, other *machine.Machine) {
	sleeper := m.Command(t.Context(), "sleep", "infinity")
	testkit.Must(t, sleeper.Start())
	output(t, m, "touch", "/run/x")
	testkit.Must(t, m.PowerOff())
	sleeper.Wait()
	rig.CheckTraces(t, m)
	if _, err := m.Output(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "has no power") {
		t.Errorf("running a program without power: %v", err)
	}
	testkit.Equal(t, "node-1", output(t, other, "hostname"))
	testkit.Must(t, m.PowerOn())
	if got := output(t, m, "sh", "-c", "cat /etc/a; ! ls /run/x 2>&1"); !strings.HasPrefix(got, "a\nls: cannot access '/run/x'") {
		t.Errorf("after a reboot it has %q, want the file on disk", got)
	}
	reach(t, other, "192.0.2.10")
}
