package agentcli

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/lab/netns"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/pod"
)

// waitTime is how long anything may take that takes seconds on an idle machine.
const waitTime = 2 * time.Minute

// service is a node on which a container of a pod runs, from its manifest,
// with the capabilities and volumes that it has there.
type service struct {
	t       *testing.T
	network *netns.Network
	node    *netns.Node
	host    host
	root    string // the container's
	spec    corev1.Container
	flags   []string // besides those of the manifest
	cmd     *exec.Cmd
	ended   chan struct{}
	log     string
}

// nodesFile is where the list of nodes is, for the agent and on the host.
const nodesFile = "/run/vipgen/nodes.yaml"

// newService starts the container that is named after its pod.
func newService(t *testing.T, name string, addresses ...string) *service {
	t.Helper()
	s := newContainer(t, name, name, addresses...)
	s.flags = []string{"--nodes=" + nodesFile}
	s.start()
	return s
}

// newContainer prepares a container of a pod.
func newContainer(t *testing.T, name, container string, addresses ...string) *service {
	t.Helper()
	h := newHost(t)
	h.address(addresses...)
	s := &service{t: t, network: h.network, node: h.Node, host: h}
	h.put(v1alpha1.HAProxyTemplate, haproxy.Template)
	h.put(v1alpha1.CorefileTemplate, coredns.Template)
	h.put(v1alpha1.HostsTemplate, coredns.HostsTemplate)
	s.nodes()
	text, err := pod.Render(name, pod.Params{Role: v1alpha1.RoleMaster, Namespace: "openshift-kni-infra"})
	if err != nil {
		t.Fatal(err)
	}
	var manifest corev1.Pod
	if err := yaml.UnmarshalStrict(text, &manifest); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(manifest.Spec.Containers, func(c corev1.Container) bool { return c.Name == container })
	s.spec = manifest.Spec.Containers[i]
	s.root = h.container(s.volumes(manifest.Spec.Volumes)...)
	for _, dir := range []string{"/usr", "/lib", "/lib64", "/bin", "/sbin", "/dev"} {
		s.share(dir)
	}
	if name == pod.CoreDNS {
		tool, err := filepath.Abs("../../.cache/bin/coredns")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Link(tool, filepath.Join(s.root, "coredns")); err != nil {
			data, err := os.ReadFile(tool)
			if err != nil {
				t.Fatalf("run `make tools`: %v", err)
			}
			if err := os.WriteFile(filepath.Join(s.root, "coredns"), data, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// volumes are the container's, as host.container takes them. The agent's own is
// filled as the init container does.
func (s *service) volumes(volumes []corev1.Volume) []string {
	var out []string
	for _, m := range s.spec.VolumeMounts {
		i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		from := "/volumes/" + m.Name
		if volumes[i].HostPath != nil {
			from = volumes[i].HostPath.Path
		} else {
			s.host.copyProgram(filepath.Join(s.host.root, from, "vipgen-agent"))
		}
		mount := from + ":" + m.MountPath
		if m.ReadOnly {
			mount += ":ro"
		}
		out = append(out, mount)
	}
	return out
}

// share makes the machine's programs and libraries those of the stock image.
func (s *service) share(dir string) {
	s.t.Helper()
	inside := filepath.Join(s.root, dir)
	if dir == "/usr" { // without what container put there
		if err := os.RemoveAll(inside); err != nil {
			s.t.Fatal(err)
		}
	}
	if target, err := os.Readlink(dir); err == nil {
		if err := os.Symlink(target, inside); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	if _, err := os.Stat(dir); err == nil {
		s.host.bind(dir, inside, false)
	}
}

// start runs the container's command with the capabilities of the manifest.
func (s *service) start() {
	s.t.Helper()
	caps := "-all"
	for _, c := range s.spec.SecurityContext.Capabilities.Add {
		caps += ",+" + strings.ToLower(string(c))
	}
	args := append([]string{"setpriv", "--bounding-set=" + caps, "--inh-caps=-all", "--no-new-privs", "--"}, s.spec.Command...)
	s.cmd = s.host.command(context.Background(), s.root, append(args, s.flags...)...)
	s.cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "NODE_NAME=master-0"}
	if s.log == "" {
		s.log = filepath.Join(s.t.TempDir(), "log")
	}
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, ended := s.cmd, make(chan struct{})
	s.ended = ended
	go func() {
		cmd.Wait()
		close(ended)
	}()
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if s.t.Failed() {
			s.t.Logf("log of the agent:\n%s", s.output())
		}
	})
}

func (s *service) output() string {
	data, _ := os.ReadFile(s.log)
	return string(data)
}

// kill ends the agent as the kernel would.
func (s *service) kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// stop ends the agent as kubelet would, and returns its exit code.
func (s *service) stop() int {
	s.t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.awaitEnd()
	return s.cmd.ProcessState.ExitCode()
}

func (s *service) awaitEnd() {
	s.t.Helper()
	select {
	case <-s.ended:
	case <-time.After(waitTime):
		s.t.Fatal("the agent does not end")
	}
}

// replace replaces a file of the host in one step.
func (s *service) replace(path, data string) {
	s.t.Helper()
	s.host.put(path+".new", data)
	path = filepath.Join(s.host.root, path)
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// nodes makes the list of nodes: "name address..." each.
func (s *service) nodes(list ...string) {
	s.t.Helper()
	var peers []v1alpha1.Peer
	for _, line := range list {
		words := strings.Fields(line)
		p := v1alpha1.Peer{Name: words[0], Role: v1alpha1.RoleMaster}
		for _, a := range words[1:] {
			p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
		}
		peers = append(peers, p)
	}
	text, err := yaml.Marshal(peers)
	if err != nil {
		s.t.Fatal(err)
	}
	s.replace(nodesFile, string(text))
}

// state reads what the job published, as another container would; false while
// there is none or its writer is gone.
func (s *service) state(name string, v any) bool {
	s.t.Helper()
	dir, err := state.Open(filepath.Join(s.host.root, v1alpha1.RunDir))
	if err != nil {
		s.t.Fatal(err)
	}
	alive, err := dir.Read(name, v)
	if err != nil {
		s.t.Fatal(err)
	}
	return alive
}

func (s *service) await(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(waitTime); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %v in vain for %s", waitTime, what)
		}
	}
}

// probe runs the manifest's liveness probe.
func (s *service) probe() (string, int) {
	s.t.Helper()
	_, errOut, code := s.host.run(s.root, s.spec.LivenessProbe.Exec.Command...)
	return errOut, code
}

// pids are the processes of that name on the node.
func (s *service) pids(name string) []string {
	s.t.Helper()
	out, err := exec.Command("ip", "netns", "pids", s.node.Namespace()).Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(pid string) bool {
		comm, _ := os.ReadFile("/proc/" + pid + "/comm")
		return strings.TrimSpace(string(comm)) != name
	})
}

// echo serves an API server that never lets go: TLS is not its business.
func echo(t *testing.T, node *netns.Node, address string, handle func(net.Conn)) {
	t.Helper()
	var l net.Listener
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c)
		}
	}()
}

func copyAll(c net.Conn) {
	defer c.Close()
	io.Copy(c, c)
}
