package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// UnitDir is the directory of systemd units.
const UnitDir = "/etc/systemd/system"

// Host is a node with its own file system and processes.
type Host struct {
	*netns.Node
	dir string

	mu     sync.Mutex
	keeper *exec.Cmd // nil while the power is off
	stdin  io.Closer
	init   int // process 1 of the host, as numbered on this machine
	links  map[string][]netip.Prefix
}

// New creates a host with an empty file system below dir, which must exist, and powers it on. The
// caller must Close it.
func New(node *netns.Node, dir string) (*Host, error) {
	h := &Host{Node: node, dir: dir}
	if err := h.create(); err != nil {
		return nil, err
	}
	return h, h.PowerOn()
}

// create creates the file system.
func (h *Host) create() error {
	for _, d := range []string{"etc", "var/lib", "var/log", "run", "tmp"} {
		if err := os.MkdirAll(h.Path(d), 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{
		"/etc/hostname": h.Name + "\n",
		"/etc/hosts":    "127.0.0.1 localhost\n::1 localhost\n",
	}
	for path, text := range files {
		if err := h.Write(path, []byte(text)); err != nil {
			return err
		}
	}
	return os.Symlink("../run", h.Path("/var/run"))
}

// Dir returns the directory of the host's data outside its file system.
func (h *Host) Dir() string { return h.dir }

// Path returns the path on this machine of a path of the host.
func (h *Host) Path(path string) string {
	return filepath.Join(h.dir, "root", filepath.Clean("/"+path))
}

// Write writes a file of the host atomically.
func (h *Host) Write(path string, data []byte) error { return h.WriteMode(path, data, 0o644) }

// WriteMode is Write with permissions.
func (h *Host) WriteMode(path string, data []byte, mode os.FileMode) error {
	path = h.Path(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(fresh, data, mode); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// MkdirAll creates a directory of the host, with its parents.
func (h *Host) MkdirAll(path string) error { return os.MkdirAll(h.Path(path), 0o755) }

// Read returns a file of the host.
func (h *Host) Read(path string) ([]byte, error) { return os.ReadFile(h.Path(path)) }

// keep is process 1 of a host. It adopts orphaned processes, and ends with its standard input,
// which the process that made the host holds open. Later mounts propagate to containers that
// request it, and never to this machine.
const keep = `mount --make-rshared / && hostname "$1" && echo up && read -r`

// PowerOn starts the host, with an empty /run.
func (h *Host) PowerOn() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keeper != nil {
		return fmt.Errorf("%s is on already", h.Name)
	}
	if err := empty(h.Path("/run")); err != nil {
		return err
	}
	cmd := h.Node.Command(context.Background(), "unshare", "--mount", "--propagation", "private",
		"--pid", "--uts", "--fork", "--kill-child", "--mount-proc", "--", "bash", "-c", keep, "keep", h.Name)
	// In a group of its own, so that a terminal does not interrupt it: a host ends with its maker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return err
	}
	h.keeper, h.stdin = cmd, stdin
	if _, err := io.ReadFull(stdout, make([]byte, len("up\n"))); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w: %s", h.Name, err, &complaint), h.end())
	}
	if h.init, err = Child(cmd.Process.Pid); err != nil {
		return errors.Join(fmt.Errorf("starting %s: %w", h.Name, err), h.end())
	}
	return h.plugIn()
}

// PowerOff sets the host's links down and kills all of its processes at once. PowerOn restores
// links and addresses, except for addresses with a host prefix, which are VIPs: a reboot loses
// them.
func (h *Host) PowerOff() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keeper == nil {
		return nil
	}
	addrs, err := h.Addresses()
	if err != nil {
		return err
	}
	h.links = map[string][]netip.Prefix{h.Link: addrs}
	return errors.Join(h.SetLink(false), h.end(), h.Kill(), h.unplug(addrs))
}

// unplug removes VIPs, which a real machine loses with its power.
func (h *Host) unplug(addrs []netip.Prefix) error {
	have, err := h.Addresses()
	for _, a := range addrs {
		if a.IsSingleIP() && slices.Contains(have, a) {
			err = errors.Join(err, h.Run(nil, "ip", "address", "delete", a.String(), "dev", h.Link))
		}
	}
	return err
}

// plugIn restores the links and addresses after PowerOff.
func (h *Host) plugIn() error {
	addrs := h.links[h.Link]
	if addrs == nil {
		return nil
	}
	h.links = nil
	err := h.SetLink(true)
	have, listErr := h.Addresses()
	err = errors.Join(err, listErr)
	for _, a := range addrs {
		if !a.IsSingleIP() && !slices.Contains(have, a) {
			err = errors.Join(err, h.AddAddress(h.Link, a))
		}
	}
	return err
}

// end kills process 1, with which the kernel kills everything on the host.
func (h *Host) end() error {
	err := h.keeper.Process.Kill() // unshare, which kills its child
	if h.init != 0 {
		if e := syscall.Kill(h.init, syscall.SIGKILL); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = e
		}
	}
	h.stdin.Close()
	h.keeper.Wait()
	h.keeper, h.init = nil, 0
	return err
}

// On reports whether the host has power.
func (h *Host) On() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper != nil
}

// Init returns the process ID on this machine of the host's first process; 0 while the power is
// off.
func (h *Host) Init() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.init
}

// Close ends all processes of the host, and removes its /run and control groups. The directory and
// the namespace stay.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if h.keeper != nil {
		err = h.end()
	}
	return errors.Join(err, h.Kill(), UnmountRun(h.dir), RemoveCgroups(h.Cgroup()))
}

// Exec returns a command that runs in all namespaces of the host, with this machine's file system.
// When ctx ends, the command and its children receive SIGTERM.
func (h *Host) Exec(ctx context.Context, name string, args ...string) *exec.Cmd {
	h.mu.Lock()
	defer h.mu.Unlock()
	enter := []string{"--target", strconv.Itoa(h.init), "--mount", "--pid", "--net", "--uts", "--", name}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	// nsenter has the command as a child and does not forward signals.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

// Run runs a program of this machine on the host's network. If it fails, the error has its output.
func (h *Host) Run(stdin io.Reader, name string, args ...string) error {
	cmd := h.Command(context.Background(), name, args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s on %s: %w: %s", name, strings.Join(args, " "), h.Name, err, bytes.TrimSpace(out))
	}
	return nil
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
