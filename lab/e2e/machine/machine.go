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

// Machine is a node with a root, control groups and processes of its own. What runs by
// Command is on it; Exec of its Host has this machine's root.
type Machine struct {
	*host.Host
	system   string // the root of the operating system that /usr is taken from
	init     bool   // the system has its own first process
	programs map[string]string
	inside   atomic.Int64  // the process that keeps the machine's root, by its ID here; 0 without power
	ended    chan struct{} // closed when that process has ended
}

// New gives a node an operating system in an empty directory, which exists, and
// switches it on. The programs, by their names, are in its /usr/local/bin. The caller
// must Close it.
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

// NewSystem gives a node an operating system with a first process of its own,
// /sbin/init, out of a root like those that debootstrap makes: its /usr, and a copy of
// its /etc and /var. The programs, by their names, are in its /usr/local/bin. The
// machine is on, and nothing runs before Boot: Ignition has its turn first. The caller
// must Close it.
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

// Boot starts the operating system, on a machine that has just been made or switched on.
func (m *Machine) Boot() error {
	if err := m.start(); err != nil {
		return errors.Join(fmt.Errorf("machine %s: %w", m.Name, err), m.PowerOff())
	}
	return nil
}

// Ended returns a channel that is closed when what keeps the machine's root has
// ended: for NewSystem, when the system has halted or wants to be booted again.
func (m *Machine) Ended() <-chan struct{} { return m.ended }

// PowerOn starts the machine: nothing runs on it, and /run is empty.
func (m *Machine) PowerOn() error {
	if err := m.Host.PowerOn(); err != nil {
		return err
	}
	return m.Boot()
}

// PowerOff ends all that runs on the machine at once, with its mounts and control
// groups, and takes its link down. What is on its disk stays.
func (m *Machine) PowerOff() error {
	m.inside.Store(0)
	return errors.Join(m.Host.PowerOff(), host.RemoveCgroups(m.Cgroup()))
}

// Close ends what runs on the machine. Nothing is left of it then but the directory,
// which is the caller's, and the namespace, which is the network's.
func (m *Machine) Close() error {
	m.inside.Store(0)
	return m.Host.Close()
}

//go:embed root.sh
var rootScript string

// start makes the machine's root the root, as an initial RAM disk does. What keeps it
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
	// In the machine's control groups before they become the root of what it sees of
	// control groups.
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
	if err == nil && m.init { // what made its PID namespace is between
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

// searchPath is where the machine's programs are.
const searchPath = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Command returns a command that will run on the machine: in its root, namespaces and
// control groups, with an environment of its own. When ctx ends it is killed.
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
	// nsenter has the command as a child and passes no signals on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// Output runs a program on the machine to its end and returns what it printed. What
// it complained of is part of the error.
func (m *Machine) Output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := m.Command(ctx, name, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s on %s: %w: %s", name, strings.Join(args, " "), m.Name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out.String(), nil
}

// localDir becomes the machine's /usr/local, in place of this machine's.
func (m *Machine) localDir() string { return filepath.Join(m.Dir(), "local") }
