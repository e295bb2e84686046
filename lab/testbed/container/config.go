package container

import (
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Config configures a container.
type Config struct {
	// ID is unique on the host.
	ID    string
	Image Image
	// Args are the program and its arguments.
	Args []string
	// Env is appended to the image's environment, which has PATH.
	Env        []string
	WorkingDir string // default "/"
	Mounts     []Mount
	UID, GID   uint32
	// Capabilities are all capabilities of the container, as CAP_NET_ADMIN.
	Capabilities    []string
	NoNewPrivileges bool
	ReadOnlyRoot    bool
	// Privileged makes /proc and /sys fully visible and writable. It does not change Capabilities.
	Privileged bool
	// Log is a file of this machine to which the output is appended.
	Log string
	// ErrorLog is the file for standard error; default Log.
	ErrorLog string
}

// Mount is a directory or file of this machine in a container.
type Mount struct {
	Source, Destination string
	ReadOnly            bool
	// Propagation is rprivate, rslave or rshared; default rprivate.
	Propagation string
}

// DefaultCapabilities returns the default capabilities of CRI-O and podman.
func DefaultCapabilities() []string {
	return []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
		"CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID",
	}
}

// searchPath is the PATH of images.
const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Paths that runtimes hide from containers, and paths that they mount read-only.
var (
	masked   = []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/firmware"}
	readOnly = []string{"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// spec returns the runtime's configuration (OCI runtime specification, config.md). The container
// has its own PID, mount and IPC namespaces, and the other namespaces of the host.
func (c Config) spec(root, cgroup string, image []specs.Mount) *specs.Spec {
	s := &specs.Spec{
		Version: "1.0.2", // supported by runc 1.1
		Root:    &specs.Root{Path: root, Readonly: c.ReadOnlyRoot},
		Process: &specs.Process{
			Args:            c.Args,
			Env:             c.env(),
			Cwd:             "/",
			User:            specs.User{UID: c.UID, GID: c.GID},
			NoNewPrivileges: c.NoNewPrivileges,
			Capabilities:    &specs.LinuxCapabilities{Bounding: c.Capabilities, Effective: c.Capabilities, Permitted: c.Capabilities},
		},
		Mounts: append(systemMounts(c.Privileged), image...),
		Linux: &specs.Linux{
			Namespaces:        []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}},
			CgroupsPath:       cgroup,
			RootfsPropagation: "rslave",
		},
	}
	if slices.Contains(c.Capabilities, "CAP_SYS_NICE") {
		s.Hooks = realTime()
	}
	if c.WorkingDir != "" {
		s.Process.Cwd = c.WorkingDir
	}
	if !c.Privileged {
		s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = masked, readOnly
	}
	s.Mounts = append(s.Mounts, c.volumes()...)
	return s
}

// realTime lets the container's processes have real-time scheduling on machines whose kernel has
// groups of real-time processes (CONFIG_RT_GROUP_SCHED, control groups of version 1): a new group
// has no such time, and they remain in the first one. OpenShift's nodes have control groups of
// version 2, without these groups. A hook gets the process ID in the container's state (OCI runtime
// specification, runtime.md).
func realTime() *specs.Hooks {
	const group = "/sys/fs/cgroup/cpu/"
	if _, err := os.Stat(group + "cpu.rt_runtime_us"); err != nil {
		return nil
	}
	move := `sed -n 's/.*"pid":\([0-9]*\).*/\1/p' >` + group + "cgroup.procs"
	return &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", move}}}}
}

func (c Config) env() []string { return append([]string{searchPath}, c.Env...) }

// volumes returns the container's mounts, outer ones before those inside them.
func (c Config) volumes() []specs.Mount {
	var out []specs.Mount
	for _, m := range c.Mounts {
		mode, propagation := "rw", m.Propagation
		if m.ReadOnly {
			mode = "ro"
		}
		if propagation == "" {
			propagation = "rprivate"
		}
		out = append(out, bind(m.Source, m.Destination, mode, propagation))
	}
	depth := func(m specs.Mount) int { return strings.Count(m.Destination, "/") }
	slices.SortStableFunc(out, func(a, b specs.Mount) int { return depth(a) - depth(b) })
	return out
}

func systemMounts(privileged bool) []specs.Mount {
	sys := "ro"
	if privileged {
		sys = "rw"
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/shm", Type: "tmpfs", Source: "shm", Options: []string{"nosuid", "noexec", "nodev", "mode=1777", "size=65536k"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"nosuid", "noexec", "nodev", sys}},
	}
}
