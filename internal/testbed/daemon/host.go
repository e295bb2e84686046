package daemon

import (
	"context"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Host is a node with its own file system, on which a test runs the command lines of pod
// manifests.
type Host struct {
	*netns.Node
	t       testing.TB
	sandbox *sandbox
}

// AddNode adds a node with one link and its addresses, each with its prefix length.
func AddNode(t testing.TB, network *netns.Network, name string, addresses ...string) *netns.Node {
	t.Helper()
	prefixes := lists.Map(addresses, netip.MustParsePrefix)
	node, err := network.AddNode(name, prefixes...)
	testkit.Must(t, err)
	return node
}

// NewHost returns a host with a node's network and its own file system, which has only the
// programs of this machine.
func NewHost(t testing.TB, node *netns.Node) *Host {
	t.Helper()
	return &Host{Node: node, t: t, sandbox: newSandbox(t)}
}

// Bind makes a file of this machine visible at a path of the host.
func (h *Host) Bind(file, inside string) {
	h.t.Helper()
	h.sandbox.bind(h.t, file, inside)
}

// Write writes or replaces a file in one step.
func (h *Host) Write(path string, data []byte) {
	h.t.Helper()
	h.sandbox.write(h.t, path, data)
}

// Path returns the path on this machine of a path of the host.
func (h *Host) Path(path string) string { return h.sandbox.path(path) }

// Start starts a program that is killed when the test ends; its output is printed if the test
// failed. It runs at nice -20, so that other load on the test machine does not delay it.
func (h *Host) Start(env []string, command ...string) *Process {
	h.t.Helper()
	cmd := h.command(context.Background(), env, append([]string{"nice", "-n", "-20"}, command...))
	return &Process{start(h.t, command[0]+" on "+h.Name, cmd), h.t}
}

// Run runs a program to its end and returns its output.
func (h *Host) Run(env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	out, err := h.command(ctx, env, command).CombinedOutput()
	return string(out), err
}

func (h *Host) command(ctx context.Context, env, command []string) *exec.Cmd {
	cmd := h.sandbox.command(ctx, h.Node, command[0], command[1:]...)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// Process is a program that a Host runs.
type Process struct {
	*process.Process
	t testing.TB
}

// Stop ends it with SIGTERM and returns its exit code, -1 if a signal ended it.
func (p *Process) Stop() int {
	p.t.Helper()
	stop(p.t, p.Process)
	return p.ExitCode()
}
