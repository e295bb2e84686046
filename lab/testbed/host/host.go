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

// UnitDir is where systemd units are.
const UnitDir = "/etc/systemd/system"

// Host is a node with a file system and processes of its own.
type Host struct {
	*netns.Node
	dir string

	mu     sync.Mutex
	keeper *exec.Cmd // nil while the power is off
	stdin  io.Closer
	init   int // process 1 of the host, as this machine sees it
	links  map[string][]netip.Prefix
}

// New gives a node an empty file system below dir, which exists, and switches
// it on. The caller must Close it.
func New(node *netns.Node, dir string) (*Host, error) {
	h := &Host{Node: node, dir: dir}
	for _, d := range []string{"etc", "var/lib", "var/log", "run", "tmp"} {
		if err := os.MkdirAll(h.Path(d), 0o755); err != nil {
			return nil, err
		}
	}
	files := map[string]string{
		"/etc/hostname": node.Name + "\n",
		"/etc/hosts":    "127.0.0.1 localhost\n::1 localhost\n",
	}
	for path, text := range files {
		if err := h.Write(path, []byte(text)); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink("../run", h.Path("/var/run")); err != nil {
		return nil, err
	}
	return h, h.PowerOn()
}

// Dir is where the host keeps what is not in its file system.
func (h *Host) Dir() string { return h.dir }

// Path returns where a path of the host is on this machine.
func (h *Host) Path(path string) string {
	return filepath.Join(h.dir, "root", filepath.Clean("/"+path))
}

// Write puts a file on the host, or replaces it in one step.
func (h *Host) Write(path string, data []byte) error { return h.WriteMode(path, data, 0o644) }

// WriteMode is Write with the file's permissions.
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

// MkdirAll makes a directory of the host, with its parents.
func (h *Host) MkdirAll(path string) error { return os.MkdirAll(h.Path(path), 0o755) }

// Read returns a file of the host.
func (h *Host) Read(path string) ([]byte, error) { return os.ReadFile(h.Path(path)) }

// keep is process 1 of a host. It takes in processes whose parent is gone, and
// ends when its standard input does, which is held by the process that made the
// host. Mounts made from now on are seen by containers that ask for it, and never
// by this machine.
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
	// Not in the group that a terminal interrupts: a host ends with its maker.
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

// PowerOff takes the host's links down and ends all of its processes at once.
// PowerOn brings links and addresses back, but for those with a host prefix,
// which are VIPs: a reboot loses them.
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

// unplug removes VIPs, which would outlive a real machine's end no more than
// its processes do.
func (h *Host) unplug(addrs []netip.Prefix) error {
	have, err := h.Addresses()
	for _, a := range addrs {
		if a.IsSingleIP() && slices.Contains(have, a) {
			err = errors.Join(err, h.Run(nil, "ip", "address", "delete", a.String(), "dev", h.Link))
		}
	}
	return err
}

// plugIn undoes what PowerOff did to the links.
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

// end kills process 1, and with it the kernel everything that runs on the host.
func (h *Host) end() error {
	err := h.keeper.Process.Kill() // unshare, which takes its child along
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

// On says whether the host has power.
func (h *Host) On() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.keeper != nil
}

// Init is the host's first process, as this machine numbers it; 0 while the power
// is off.
func (h *Host) Init() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.init
}

// Close ends what runs on the host, and removes its control groups. The
// directory is the caller's, the namespace the network's.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	if h.keeper != nil {
		err = h.end()
	}
	return errors.Join(err, h.Kill(), RemoveCgroups(h.Cgroup()))
}

// Exec returns a command that will run in all of the host's namespaces, with
// this machine's file system. When ctx ends it, and what it started, is asked to
// end with SIGTERM.
func (h *Host) Exec(ctx context.Context, name string, args ...string) *exec.Cmd {
	h.mu.Lock()
	defer h.mu.Unlock()
	enter := []string{"--target", strconv.Itoa(h.init), "--mount", "--pid", "--net", "--uts", "--", name}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	// nsenter has the command as a child and passes no signals on.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}

// Run runs a program of this machine on the host's network and returns an error
// with what it printed if it fails.
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
