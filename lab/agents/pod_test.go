package agents

import (
	"context"
	"log/slog"
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

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	kubelet "github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/manifest"
)

// waitTime is the time limit for operations that take seconds on an idle machine.
const waitTime = 2 * time.Minute

// service is a container on a node with the settings of its pod's manifest or its unit. Only
// the test starts, probes and ends it.
type service struct {
	node
	cfg      container.Config
	liveness []string // the command of its probe
	running  *container.Container
}

// nodesFile is the path of the list of nodes, for the agent and on the host.
const nodesFile = "/run/vipgen/nodes.yaml"

// readNodes has the agent read that list.
const readNodes = "--nodes=" + nodesFile

// newService starts the container that is named after its pod.
func newService(t *testing.T, name string, addresses ...string) *service {
	t.Helper()
	s := newContainer(newNode(t, addresses...), name, name, readNodes)
	s.start()
	return s
}

// newContainer prepares a container of a pod, with flags besides those of the
// manifest.
func newContainer(n node, name, containerName string, flags ...string) *service {
	n.t.Helper()
	s := &service{node: n}
	s.put(v1alpha1.HAProxyTemplate, haproxy.Template)
	s.put(v1alpha1.CorefileTemplate, coredns.Template)
	s.put(v1alpha1.HostsTemplate, coredns.HostsTemplate)
	testkit.Must(s.t, s.MkdirAll("/var/lib/kubelet"))
	s.nodes()
	text, err := manifest.RenderPod(name, manifest.PodParams{
		Role: v1alpha1.RoleMaster, Namespace: "openshift-kni-infra",
		Images: v1alpha1.Images{Agent: agentImage, HAProxy: "haproxy", CoreDNS: "coredns"},
	})
	testkit.Must(s.t, err)
	manifest, err := kubelet.Read(text)
	testkit.Must(s.t, err)
	for _, c := range manifest.Spec.Containers {
		if c.Name == containerName {
			s.liveness = c.LivenessProbe.Exec.Command
		}
	}
	k := kubelet.Kubelet{Host: n.Host, Images: images(n.t), Log: slog.New(slog.NewTextHandler(n.t.Output(), nil))}
	ctx, cancel := context.WithTimeout(n.t.Context(), waitTime)
	defer cancel()
	cfg, err := k.Prepare(ctx, text, containerName)
	testkit.Must(s.t, err)
	cfg.Args = append(cfg.Args, flags...)
	s.setConfig(cfg)
	return s
}

// setConfig sets the container to start; all runs share one log.
func (s *service) setConfig(cfg container.Config) {
	s.cfg = cfg
	s.cfg.Log = filepath.Join(s.t.TempDir(), "log")
}

// start runs the container's command, in which the agent is the first process.
func (s *service) start() {
	s.t.Helper()
	s.startAs(s.cfg.Args...)
}

func (s *service) startAs(args ...string) {
	s.t.Helper()
	cfg := s.cfg
	cfg.Args = args
	running, err := container.Start(s.Host, cfg)
	testkit.Must(s.t, err)
	s.running = running
	s.t.Cleanup(func() {
		running.Signal(syscall.SIGKILL)
		<-running.Done()
		if s.t.Failed() {
			s.t.Logf("log of the agent:\n%s", s.output())
		}
	})
}

func (s *service) output() string {
	data, _ := os.ReadFile(s.cfg.Log)
	return string(data)
}

// signalInit sends a signal to the container's first process.
func (s *service) signalInit(sig syscall.Signal) {
	s.t.Helper()
	testkit.Must(s.t, s.running.Signal(sig))
}

// kill ends the container as the kernel would.
func (s *service) kill() {
	s.t.Helper()
	s.signalInit(syscall.SIGKILL)
	s.awaitEnd()
}

// stop ends the agent as kubelet would, and returns its exit code.
func (s *service) stop() int {
	s.t.Helper()
	s.signalInit(syscall.SIGTERM)
	return s.awaitEnd()
}

func (s *service) awaitEnd() (exitCode int) {
	s.t.Helper()
	select {
	case <-s.running.Done():
	case <-time.After(waitTime):
		s.t.Fatal("the agent does not end")
	}
	return s.running.ExitCode()
}

// run runs a command to its end with the container's settings, in a second container.
func (s *service) run(command ...string) (out, errOut string, code int) {
	s.t.Helper()
	cfg := s.cfg
	cfg.ID, cfg.Args = cfg.ID+"-beside", command
	return s.node.run(cfg)
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
	testkit.Must(s.t, err)
	s.put(nodesFile, string(text))
}

// published reads the published state of a job, as another container would; false while there
// is none or its writer is gone.
func published[T state.Job](s *service) (v T, alive bool) {
	s.t.Helper()
	dir, err := state.Open(s.Path(v1alpha1.RunDir))
	testkit.Must(s.t, err)
	defer dir.Close()
	p, err := state.Read[T](dir)
	testkit.Must(s.t, err)
	if p == nil {
		return v, false
	}
	return *p, true
}

// jobService is a container whose job publishes its state as T.
type jobService[T state.Job] struct{ *service }

// awaitState waits until the published state meets a condition, and returns it.
func (p jobService[T]) awaitState(what string, ok func(T) bool) (v T) {
	p.t.Helper()
	p.await(what, func() bool {
		var alive bool
		v, alive = published[T](p.service)
		return alive && ok(v)
	})
	return v
}

func (s *service) await(what string, ok func() bool) {
	s.t.Helper()
	testkit.AwaitWithin(s.t, waitTime, what, ok)
}

// probe runs the manifest's liveness probe.
func (s *service) probe() (string, int) {
	s.t.Helper()
	_, errOut, code := s.run(s.liveness...)
	return errOut, code
}

// alive checks that the liveness probe succeeds.
func (s *service) alive() {
	s.t.Helper()
	if errOut, code := s.probe(); code != command.OK {
		s.t.Errorf("liveness probe: %d: %s", code, errOut)
	}
}

// pids are the processes of that name on the node.
func (s *service) pids(name string) []string {
	s.t.Helper()
	out, err := exec.Command("ip", "netns", "pids", s.Namespace()).Output()
	testkit.Must(s.t, err)
	return slices.DeleteFunc(strings.Fields(string(out)), func(pid string) bool {
		comm, _ := os.ReadFile("/proc/" + pid + "/comm")
		return strings.TrimSpace(string(comm)) != name
	})
}

// echo serves a stand-in for an API server that keeps connections open, without TLS:
// it answers each byte by its name.
func echo(t *testing.T, node *netns.Node, address string, name byte) {
	t.Helper()
	var l net.Listener
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	})
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for question := make([]byte, 1); ; c.Write([]byte{name}) {
					if _, err := c.Read(question); err != nil {
						return
					}
				}
			}()
		}
	}()
}
