package cli

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab/control"
)

// labRunner runs the built programs on labs in a temporary directory.
type labRunner struct {
	t       *testing.T
	ctx     context.Context
	program string
	base    string
	coredns string
}

//go:embed testdata/install-config.yaml
var labInstallConfig string

func newLabRunner(t *testing.T) *labRunner {
	t.Helper()
	coredns := testkit.Tool(t, "coredns")
	ctx := t.Context()
	if end, ok := t.Deadline(); ok { // less a minute to clean up
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-time.Minute))
		t.Cleanup(cancel)
	}
	bin, err := os.MkdirTemp("", "vipgen-bin-") // that users other than root can access
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(bin) })
	testkit.Must(t, os.Chmod(bin, 0o755))
	for name, program := range map[string]string{"vipgen": testkit.Vipgen(t), "vipgen-lab": testkit.Lab(t), "vipgen-agent": testkit.Agent(t), "vipgen-bgp": testkit.Speaker(t)} {
		data, err := os.ReadFile(program)
		if err == nil {
			err = process.WriteProgram(filepath.Join(bin, name), data)
		}
		testkit.Must(t, err)
	}
	r := &labRunner{t: t, ctx: ctx, program: filepath.Join(bin, "vipgen"), base: t.TempDir(), coredns: coredns}
	t.Cleanup(func() { // the remains of a failed test
		r.ctx = context.Background()
		if out, code := r.run("down"); code != command.OK {
			t.Errorf("lab down: exit code %d\n%s", code, out)
		}
	})
	return r
}

// command returns `vipgen lab` with the flags before other arguments.
func (r *labRunner) command(name string, args ...string) *exec.Cmd {
	line := append([]string{"lab", name, "--dir", r.base}, args...)
	return exec.CommandContext(r.ctx, r.program, line...)
}

// run runs a command and returns all of its output.
func (r *labRunner) run(name string, args ...string) (out string, code int) {
	r.t.Helper()
	return r.output(r.command(name, args...))
}

func (r *labRunner) output(cmd *exec.Cmd) (string, int) {
	r.t.Helper()
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		r.t.Fatalf("%v: %v", cmd, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must runs a command that must succeed.
func (r *labRunner) must(name string, args ...string) string {
	r.t.Helper()
	out, code := r.run(name, args...)
	if code != command.OK {
		r.t.Fatalf("lab %s %q: exit code %d\n%s", name, args, code, out)
	}
	return out
}

// await polls the status until it is as wanted.
func (r *labRunner) await(what string, ok func(*control.Status) bool) *control.Status {
	r.t.Helper()
	last, code := "", 0
	for r.ctx.Err() == nil {
		if last, code = r.run("status", "-o", "json"); code == command.OK {
			s := new(control.Status)
			testkit.Must(testkit.In(r.t, last), json.Unmarshal([]byte(last), s))
			if ok(s) {
				return s
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatalf("waited in vain for %s\n%s", what, last)
	return nil
}

// node returns a node of the status by its name.
func nodeOf(s *control.Status, name string) control.Node {
	return s.Nodes[slices.IndexFunc(s.Nodes, func(n control.Node) bool { return n.Name == name })]
}

// allHeld reports whether every VIP has one holder.
func allHeld(s *control.Status) bool {
	return !slices.ContainsFunc(s.VIPs, func(v control.VIP) bool { return len(v.Holders) != 1 })
}

// remains holds everything that a lab has on this machine.
type remains struct {
	names     []string
	processes map[string]string // start times by process ID
}

func (r *labRunner) remainsOf(s *control.Status) remains {
	r.t.Helper()
	out := remains{processes: map[string]string{}}
	for _, m := range s.Others {
		out.names = append(out.names, m.Namespace)
	}
	for _, n := range s.Nodes {
		out.names = append(out.names, n.Namespace)
	}
	out.names = append(out.names, strings.TrimSuffix(s.Others[0].Namespace, "n-client")+"hub")
	for _, name := range out.names {
		pids, err := exec.Command("ip", "netns", "pids", name).Output()
		testkit.Must(testkit.In(r.t, name), err)
		for pid := range strings.FieldsSeq(string(pids)) {
			if start := startTime(pid); start != "" {
				out.processes[pid] = start
			}
		}
	}
	if len(out.processes) == 0 {
		r.t.Fatal("nothing runs in the lab")
	}
	return out
}

// startTime is when a process started (proc(5)); empty if it has ended.
func startTime(pid string) string {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// gone checks that nothing is left.
func (r *labRunner) gone(left remains) {
	r.t.Helper()
	mounts := testkit.ReadFile(r.t, "/proc/self/mountinfo")
	for _, name := range left.names {
		if regexp.MustCompile(`/` + regexp.QuoteMeta(name) + `\b`).Match(mounts) {
			r.t.Errorf("%s is still mounted", name)
		}
		for _, pattern := range []string{"/run/netns/", "/sys/fs/cgroup/", "/sys/fs/cgroup/*/", "/run/"} {
			if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
				r.t.Errorf("left behind: %q", found)
			}
		}
	}
	testkit.Lacks(r.t, string(mounts), r.base)
	for pid, start := range left.processes {
		// The kernel takes a while to end killed processes when all cores are busy.
		testkit.Await(r.t, "the end of process "+pid, func() bool { return startTime(pid) != start })
	}
	if entries, err := os.ReadDir(r.base); err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) > 0 {
		r.t.Errorf("files left in %s: %v, %v", r.base, entries, err)
	}
}

// run runs a command line in the current directory.
func run(args ...string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	code = Run(args, strings.NewReader(""), &out, &errOut)
	return code, out.String(), errOut.String()
}

// TestLab builds a lab like a user, and runs its commands.
func TestLab(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	r := newLabRunner(t)
	testkit.WriteFile(t, r.base+".yaml", []byte(labInstallConfig))
	config := r.base + ".yaml"
	t.Cleanup(func() { os.Remove(config) })
	log, err := os.Create(filepath.Join(t.TempDir(), "out"))
	testkit.Must(t, err)
	defer log.Close()
	up := r.command("up", "--coredns", r.coredns, config)
	up.Stdout, up.Stderr = log, log
	testkit.Must(t, up.Start())
	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	printed := func() string {
		data, err := os.ReadFile(log.Name())
		testkit.Check(t, err)
		return string(data)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("lab up printed:\n%s", printed())
		}
	})
	s := r.await("a holder of every VIP", allHeld)
	left := r.remainsOf(s)
	if out, code := r.run("up", config, "--coredns", r.coredns); code != command.Failed || !strings.Contains(out, "runs already") {
		t.Errorf("a second lab of that name: exit code %d\n%s", code, out)
	}
	t.Run("Exec", func(t *testing.T) { testLabExec(t, r, s) })
	t.Run("Kill", func(t *testing.T) { testLabKill(t, r, printed) })
	t.Run("Partition", func(t *testing.T) { testLabPartition(t, r) })
	t.Run("Services", func(t *testing.T) { testLabServices(t, r) })
	t.Run("Text", func(t *testing.T) {
		out := r.must("status")
		testkit.Contains(t, out, "lab demo  demo.example.com  up ", "\nVIP        GROUP", "\nNODE      ROLE", "\nmaster-2  master", "HAProxy is ready")
	})
	testkit.Equal(t, "removed the lab demo\n", r.must("down"))
	testkit.Check(t, <-ended)
	testkit.Contains(t, printed(), "  network and machines\n", "  up\n", " loses its power\n", " the network is cut: ", ": haproxy is stopped\n", "removing the lab demo\n")
	r.gone(left)
	testkit.Equal(t, "no lab: nothing to remove\n", r.must("down"))
}

// holder returns the holder of the first VIP.
func (r *labRunner) holder() string {
	r.t.Helper()
	return r.await("a holder of every VIP", allHeld).VIPs[0].Holders[0]
}

func testLabExec(t *testing.T, r *labRunner, s *control.Status) {
	const node = "master-1"
	testkit.Equal(testkit.In(t, "the node's file"), node+"\n", r.must("exec", node, "--", "cat", "etc/hostname"))
	testkit.Contains(t, r.must("exec", "client", "--", "ip", "-o", "address"), s.Others[0].Addresses[0].String())
	testkit.Contains(t, r.must("exec", node, "--", "vipgen-agent", "status"), "keepalived ")
	cat := r.command("exec", node, "--", "cat")
	cat.Stdin = strings.NewReader("through")
	if out, code := r.output(cat); code != command.OK || out != "through" {
		t.Errorf("standard input: exit code %d, %q", code, out)
	}
	if out, code := r.run("exec", node, "--", "sh", "-c", "exit 7"); code != 7 || out != "" {
		t.Errorf("exit code %d, %q", code, out)
	}
	if out, code := r.run("exec", "nobody", "--", "true"); code != command.Input || !strings.Contains(out, "it has master-0, ") {
		t.Errorf("an unknown node: exit code %d, %q", code, out)
	}
}

func testLabKill(t *testing.T, r *labRunner, printed func() string) {
	first := r.holder()
	r.must("kill", first)
	s := r.await("another holder", func(s *control.Status) bool { return allHeld(s) && s.VIPs[0].Holders[0] != first })
	// On a late machine two nodes may take the VIP, one after the other or at once: then the
	// last failover is between them, or the time without a holder is unknown.
	vip := s.VIPs[0].Address.String()
	both := strings.Contains(printed(), vip+": SPLIT BRAIN")
	if f := s.VIPs[0].Failover; f == nil || f.To != s.VIPs[0].Holders[0] || f.From == first && f.WithoutHolderMS <= 0 && !both {
		t.Errorf("failover %+v", f)
	}
	taken := regexp.MustCompile(regexp.QuoteMeta(vip) + `: \S+ has it, (from|taken over from) ` + first + `(, \S+ ` + vrrp.WithoutHolder + `)?\n`)
	testkit.Await(t, "the failover from "+first+" to be printed", func() bool { return taken.MatchString(printed()) })
	if n := nodeOf(s, first); n.Power || n.PID != 0 || len(n.VIPs) > 0 {
		t.Errorf("a node without power: %+v", n)
	}
	for _, args := range [][]string{{"kill", first}, {"exec", first, "true"}, {"stop-service", first, "haproxy"}} {
		if out, code := r.run(args[0], args[1:]...); code != command.Input || !strings.Contains(out, first+" is off") {
			t.Errorf("%q of a node without power: exit code %d\n%s", args, code, out)
		}
	}
	r.must("heal", first)
	r.await(first+" to be whole", func(s *control.Status) bool {
		n := nodeOf(s, first)
		return n.Power && n.Link && len(n.Stopped) == 0 && len(n.Priorities) > 0
	})
}

func testLabPartition(t *testing.T, r *labRunner) {
	first := r.holder()
	r.must("partition", first+" | client")
	s := r.await("a holder on each side", func(s *control.Status) bool { return len(s.VIPs[0].Holders) == 2 })
	if !slices.Contains(s.VIPs[0].Holders, first) || !slices.Equal(s.CutOff, []string{first}) {
		t.Errorf("holders %v, cut off %v", s.VIPs[0].Holders, s.CutOff)
	}
	r.must("heal")
	testkit.Empty(t, r.await("one holder", allHeld).CutOff)
}

func testLabServices(t *testing.T, r *labRunner) {
	first := r.holder()
	r.must("stop-service", first, "haproxy")
	s := r.await("another holder", func(s *control.Status) bool { return allHeld(s) && s.VIPs[0].Holders[0] != first })
	testkit.Equal(t, []string{"haproxy"}, nodeOf(s, first).Stopped)
	if out, code := r.run("stop-service", first, "haproxy"); code != command.Input || !strings.Contains(out, "already") {
		t.Errorf("stopped twice: exit code %d\n%s", code, out)
	}
	complete := exec.CommandContext(r.ctx, r.program, "__complete", "lab", "start-service", "--dir", r.base, first, "")
	if out, _ := r.output(complete); !strings.HasPrefix(out, "haproxy\n:4\n") {
		t.Errorf("completion: %s", out)
	}
	r.must("start-service", first, "haproxy")
	for _, service := range []string{"api-server", "machine-config-server"} {
		r.must("stop-service", first, service)
	}
	r.must("stop-service", "worker-0", "router")
	r.await("a fault", func(s *control.Status) bool {
		n := nodeOf(s, "worker-0")
		return len(n.Priorities) == 1 && n.Priorities[0].Fault
	})
	r.must("heal")
	r.await("everything to be back", func(s *control.Status) bool {
		return allHeld(s) && !slices.ContainsFunc(s.Nodes, func(n control.Node) bool { return len(n.Stopped) > 0 })
	})
	if out, code := r.run("start-service", first, "rooter"); code != command.Input || !strings.Contains(out, "it has coredns, haproxy, keepalived, mdns-publisher, api-server, machine-config-server") {
		t.Errorf("an unknown service: exit code %d\n%s", code, out)
	}
}

// TestLabRouted runs the commands that lab up prints for a lab with VIPs by BGP, as they are printed.
func TestLabRouted(t *testing.T) {
	testkit.Live(t)
	for _, program := range []string{"/usr/lib/frr/bgpd", "/usr/sbin/bird"} {
		if _, err := os.Stat(program); err != nil {
			testkit.CannotRun(t, "it takes Debian's packages frr and bird2")
		}
	}
	t.Parallel()
	r := newLabRunner(t)
	wants := []string{"ROUTED TO", "198.51.100.5/32", "64512", "198.51.100.6/32", "announces to routers", "master-0 is off", "ok", "all faults are undone", "removed the lab demo\n"}
	printed := r.must("up", "--announce", "bgp", "--detach", "--coredns", r.coredns)
	routedTo := func(nodes ...string) func(*control.Status) bool {
		return func(s *control.Status) bool { return slices.Equal(s.VIPs[0].Holders, nodes) }
	}
	left := r.remainsOf(r.await("routes to all of the control plane", routedTo("master-0", "master-1", "master-2")))
	for line := range strings.Lines(printed) {
		args, ours := strings.CutPrefix(strings.TrimSpace(line), "vipgen ")
		if !ours {
			continue
		}
		if len(wants) == 0 {
			t.Fatalf("lab up printed\n%s", printed)
		}
		out, code := r.output(exec.CommandContext(r.ctx, "sh", "-c", r.program+" "+args))
		if code != command.OK || !strings.Contains(out, wants[0]) {
			t.Errorf("vipgen %s: exit code %d, want %q\n%s", args, code, wants[0], out)
		}
		switch wants = wants[1:]; strings.Fields(args)[1] {
		case "kill":
			r.await("the routes without master-0", routedTo("master-1", "master-2"))
		case "heal":
			r.await("all routes again", routedTo("master-0", "master-1", "master-2"))
		}
	}
	testkit.Empty(t, wants)
	r.gone(left)
}

// TestLabCrash kills the process that runs a lab.
func TestLabCrash(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	r := newLabRunner(t)
	config := filepath.Join(t.TempDir(), "install-config.yaml")
	testkit.WriteFile(t, config, []byte(labInstallConfig))
	crash := func() remains {
		t.Helper()
		out := r.must("up", "--detach", "--nodes", "master=2,worker=1", "--coredns", r.coredns, config)
		testkit.Contains(t, out, "vipgen lab down")
		s := r.await("an answer", func(*control.Status) bool { return true })
		left := r.remainsOf(s)
		testkit.Must(t, syscall.Kill(s.PID, syscall.SIGKILL))
		// Its last thread may take a moment to end.
		for out := ""; !strings.Contains(out, "'vipgen lab down' does"); time.Sleep(10 * time.Millisecond) {
			var code int
			if out, code = r.run("status"); code != command.Failed || r.ctx.Err() != nil {
				t.Fatalf("status: exit code %d\n%s", code, out)
			}
		}
		return left
	}
	first := crash()
	second := crash() // whose lab takes the place of the first one
	testkit.Contains(t, r.must("down"), "had crashed")
	r.gone(first)
	r.gone(second)
}

func TestLabNeedsRoot(t *testing.T) {
	r := newLabRunner(t)
	for _, args := range [][]string{{"up"}, {"status"}, {"down"}, {"kill", "a"}, {"exec", "a", "true"}} {
		cmd := exec.CommandContext(r.ctx, r.program, append([]string{"lab"}, args...)...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, code := r.output(cmd); code != command.Failed || out != "vipgen: a lab is made of network namespaces, which need root: run it with sudo\n" {
			t.Errorf("%q: exit code %d, %q", args, code, out)
		}
	}
}

func TestLabBadArguments(t *testing.T) {
	testkit.Privileged(t) // others get the message that a lab needs root
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"up", "a", "b"}, command.Input, `unexpected argument "b"`},
		{[]string{"up", "no-such.yaml"}, command.Failed, "no such file"},
		{[]string{"up", "routed/install-config.yaml"}, command.Input, `routed/vipgen.yaml:4:13: error: spec.announce: found bgp, expected vrrp: the lab of an install-config has no routers (`},
		{[]string{"up", "--announce", "bgp", "install-config.yaml"}, command.Input, "--announce bgp has a built-in cluster, without an install-config"},
		{[]string{"up", "--announce", "bgp", "--bootstrap"}, command.Input, "--announce bgp has a built-in cluster, without --bootstrap"},
		{[]string{"up", "--announce", "ospf"}, command.Input, "--announce ospf: expected vrrp or bgp"},
		{[]string{"up", "--nodes", "nope=1"}, command.Input, `no pool "nope"`},
		{[]string{"up", "--nodes", "worker=1000"}, command.Input, "0 to 32 nodes"},
		{[]string{"up", "--name", "Upper"}, command.Input, "expected the name of a lab"},
		{[]string{"up", "--name", strings.Repeat("a", 60) + "." + strings.Repeat("b", 60)}, command.Input, "choose a shorter"},
		{[]string{"up", "--agent", "/dev/null"}, command.Failed, "is not a program"},
		{[]string{"bench", "--agent", "/bin/true"}, command.Failed, "is linked dynamically"},
		{[]string{"chaos", "--agent", "/bin/true"}, command.Failed, "is linked dynamically"},
		{[]string{"kill"}, command.Input, "missing: NODE"},
		{[]string{"stop-service", "a"}, command.Input, "missing: SERVICE"},
		{[]string{"exec", "a"}, command.Input, "missing: a node and a command"},
		{[]string{"partition"}, command.Input, "missing: NODE[,NODE...]"},
		{[]string{"partition", ","}, command.Input, "expected the nodes of a side"},
		{[]string{"partition", "a|b|c"}, command.Input, "two sides, not 3"},
		{[]string{"partition", "a,b | c,a"}, command.Input, "a is on both sides"},
		{[]string{"status", "-o", "yaml"}, command.Input, "expected text or json"},
		{[]string{"status"}, command.Failed, "there is no lab in "},
		{[]string{"kill", "a", "--name", "demo"}, command.Failed, "there is no lab demo in "},
		{[]string{"status", "--name", "../x"}, command.Failed, "expected the name of a lab"},
	}
	t.Chdir(t.TempDir())
	testkit.WriteFile(t, "install-config.yaml", []byte(labInstallConfig))
	testkit.WriteFile(t, "routed/install-config.yaml", []byte(strings.NewReplacer("192.0.2.5", "198.51.100.5", "192.0.2.6", "198.51.100.6").Replace(labInstallConfig)))
	testkit.WriteFile(t, "routed/vipgen.yaml", []byte("apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec:\n  announce: bgp\n  bgp: {localASN: 64512, peers: [{address: 192.0.2.1, asn: 64601}]}\n"))
	for _, tt := range tests {
		args := append([]string{tt.args[0], "--dir", "labs"}, tt.args[1:]...)
		code, stdout, stderr := run(args...)
		if code != tt.code || !strings.Contains(stderr, tt.want) || stdout != "" {
			t.Errorf("%q: exit code %d, want %d with %q\n%s%s", args, code, tt.code, tt.want, stdout, stderr)
		}
	}
	if _, err := os.Stat("labs"); err == nil {
		t.Error("something was made")
	}
}
