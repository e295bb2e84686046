package machine

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// Machine is a node with its own root, control groups and processes. Command runs programs in its
// root; Exec of its Host runs them in this machine's root.
type Machine struct {
	*host.Host
	system   string // root of the operating system that provides /usr
	init     bool   // the system has its own first process
	programs map[string]string
	inside   atomic.Int64  // the process that holds the machine's root, by its ID here; 0 without power
	ended    chan struct{} // closed when that process has ended
}

// New creates a machine with an operating system in an empty directory, which must exist, and
// powers it on. The programs, by name, are in its /usr/local/bin. The caller must Close it.
func New(node *netns.Node, dir string, programs map[string]string) (m *Machine, err error) {
	h, err := host.New(node, dir)
	if h == nil {
		return nil, err
	}
	m = &Machine{Host: h, system: "/", programs: programs}
	if err == nil {
		err = m.install()
	}
	if err == nil {
		err = m.start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("machine %s: %w", node.Name, err), m.Close())
	}
	return m, nil
}

// NewSystem creates a machine with an operating system that has its own first process, /sbin/init,
// from a root like those of debootstrap: its /usr, and a copy of its /etc and /var. The programs,
// by name, are in its /usr/local/bin. The machine is powered on, and nothing runs before Boot, so
// that Ignition can run first. The caller must Close it.
func NewSystem(node *netns.Node, dir, system string, programs map[string]string) (m *Machine, err error) {
	h, err := host.New(node, dir)
	if h == nil {
		return nil, err
	}
	m = &Machine{Host: h, system: system, init: true, programs: programs}
	if err == nil {
		err = m.install()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("machine %s: %w", node.Name, err), m.Close())
	}
	return m, nil
}

// Boot starts the operating system on a machine that was just created or powered on.
func (m *Machine) Boot() error {
	if err := m.start(); err != nil {
		return errors.Join(fmt.Errorf("machine %s: %w", m.Name, err), m.PowerOff())
	}
	return nil
}

// Ended returns a channel that is closed when the process that holds the machine's root has ended:
// for NewSystem, when the system has halted or reboots.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

// PowerOn powers the machine on: nothing runs on it, and /run is empty.
func (m *Machine) PowerOn() error {
	if err := m.Host.PowerOn(); err != nil {
		return err
	}
	return m.Boot()
}

// PowerOff ends everything on the machine at once, with its mounts and control groups, and sets its
// link down. Its disk stays.
func (m *Machine) PowerOff() error {
	m.inside.Store(0)
	return errors.Join(m.Host.PowerOff(), host.RemoveCgroups(m.Cgroup()))
}

// Close ends everything on the machine. Only the directory and the network namespace stay.
func (m *Machine) Close() error {
	m.inside.Store(0)
	return m.Host.Close()
}

//go:embed root.sh
var rootScript string

// start changes to the machine's root, as an initial RAM disk does. The process that holds the root
// is a process of the host, and ends with it.
func (m *Machine) start() error {
	groups, err := makeCgroups(m.Cgroup())
	if err != nil {
		return err
	}
	init := ""
	if m.init {
		init = "/sbin/init"
	}
	args := []string{"-c", rootScript, "root.sh", init, m.Path("/"), filepath.Join(m.system, "usr"), m.localDir(), strings.Join(groups, ":")}
	for _, name := range slices.Sorted(maps.Keys(m.programs)) {
		args = append(args, name, m.programs[name])
	}
	cmd := m.Host.Exec(context.Background(), "bash", args...)
	cmd.Cancel = nil
	// Enter the machine's control groups before they become the root of its view of control groups.
	cmd.Args = inCgroups(cmd.Args, groups)
	cmd.Path = "/bin/sh"
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "up\n" {
		err = errors.Join(err, cmd.Wait())
		return fmt.Errorf("making its root: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	inside, err := host.Child(cmd.Process.Pid)
	if err == nil && m.init { // the process that created its PID namespace is in between
		inside, err = host.Child(inside)
	}
	if err != nil {
		return fmt.Errorf("making its root: %w", err)
	}
	m.inside.Store(int64(inside))
	ended := make(chan struct{})
	m.ended = ended
	go func() {
		io.Copy(io.Discard, stdout)
		cmd.Wait()
		close(ended)
	}()
	return nil
}

// searchPath is the PATH of the machine's programs.
const searchPath = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Command returns a command that runs on the machine: in its root, namespaces and control groups,
// with a separate environment. It is killed when ctx ends.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	inside := m.inside.Load()
	enter := []string{"--target", strconv.FormatInt(inside, 10), "--mount", "--pid", "--net", "--uts", "--cgroup", "--",
		"/usr/bin/sh", "-c", `cd / && exec "$@"`, "sh", name}
	cmd := exec.CommandContext(ctx, "/bin/sh")
	groups, err := cgroupDirs(m.Cgroup())
	if inside == 0 {
		err = fmt.Errorf("%s has no power", m.Name)
	}
	cmd.Err = errors.Join(cmd.Err, err)
	cmd.Args = inCgroups(append(append([]string{"nsenter"}, enter...), args...), groups)
	cmd.Env = []string{"PATH=" + searchPath, "HOME=/root", "LANG=C.UTF-8"}
	// nsenter has the command as a child and does not forward signals.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// Output runs a program on the machine to its end and returns its standard output. The error has
// its standard error.
func (m *Machine) Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := m.Command(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s on %s: %w: %s", name, strings.Join(args, " "), m.Name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// localDir returns the directory that becomes the machine's /usr/local, in place of this machine's.
func (m *Machine) localDir() string { return filepath.Join(m.Dir(), "local") }
