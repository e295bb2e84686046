package agents

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	template "github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/manifest"
)

// plainChecks is the shipped template with health checks that need no API
// server behind the port.
var plainChecks = strings.NewReplacer("    option httpchk\n", "", "    http-check send meth GET uri /readyz hdr x-server %[srv_name]\n", "", "    http-check expect status 200\n", "", " addr 127.0.0.1 port {{ .ReadyPort }}", "").Replace(template.Template)

// balancer is a node with HAProxy under the agent, and two more nodes.
type balancer struct {
	jobService[state.HAProxy]
	others map[string]*netns.Node // by name
}

func newBalancer(t *testing.T) balancer {
	t.Helper()
	b := balancer{jobService[state.HAProxy]{newService(t, manifest.HAProxy, "192.0.2.10/24")}, map[string]*netns.Node{}}
	b.put(v1alpha1.HAProxyTemplate, plainChecks)
	echo(t, b.Node, "192.0.2.10:6443", '0')
	for i := 1; i < 3; i++ {
		name, addr := fmt.Sprintf("master-%d", i), fmt.Sprintf("192.0.2.1%d", i)
		b.others[name] = daemon.AddNode(t, b.network, name, addr+"/24")
		echo(t, b.others[name], addr+":6443", byte('0'+i))
	}
	return b
}

// up waits until exactly these backends are up, and the agent's reload of HAProxy is complete,
// which HAProxy logs first.
func (b balancer) up(backends ...string) state.HAProxy {
	b.t.Helper()
	return b.awaitState(fmt.Sprintf("backends %v", backends), func(s state.HAProxy) bool {
		conf, err := os.Stat(b.Path(v1alpha1.HAProxyConf))
		if err != nil || conf.ModTime().After(s.LastReload) {
			return false
		}
		var got []string
		for _, x := range s.Backends {
			if x.Up {
				got = append(got, x.Name+"="+x.Address)
			}
		}
		return s.Serving && len(s.Backends) == len(got) && strings.Join(got, " ") == strings.Join(backends, " ")
	})
}

// dial opens a connection, and returns the server that answers.
func (b balancer) dial(t *testing.T) (c net.Conn, server byte) {
	t.Helper()
	c, err := b.DialContext(t.Context(), "tcp", "192.0.2.10:9445")
	testkit.Must(t, err)
	t.Cleanup(func() { c.Close() })
	server, err = ask(c)
	testkit.Must(t, err)
	return c, server
}

// ask returns the server that a connection reaches.
func ask(c net.Conn) (server byte, err error) {
	c.SetDeadline(time.Now().Add(waitTime))
	if _, err := c.Write([]byte("?")); err != nil {
		return 0, err
	}
	answer := make([]byte, 1)
	_, err = c.Read(answer)
	return answer[0], err
}

// daemons waits until one master and one worker of HAProxy run, and no other process: a worker
// from before a reload ends with its connections, and a check of a file soon.
func (b balancer) daemons() (pids []string) {
	b.t.Helper()
	b.await("one master and one worker", func() bool {
		pids = b.pids("haproxy")
		return len(pids) == 2
	})
	return pids
}

const m0, m1, m2 = "master-0=192.0.2.10:6443", "master-1=192.0.2.11:6443", "master-2=192.0.2.12:6443"

// TestHardCase28FileCapability: the agent can check with, and run, a HAProxy with a file
// capability, as in OpenShift's image; without that capability in the container's bounding set
// the kernel refuses to execute it.
func TestHardCase28FileCapability(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	b.up(m0, m1)
	for name, keep := range map[string]bool{"pod": true, "bare": false} {
		cfg := b.cfg
		cfg.ID, cfg.Args = name, []string{"/usr/sbin/haproxy", "-v"}
		if !keep {
			cfg.Capabilities = nil
		}
		out, errOut, code := b.node.run(cfg)
		if (code == 0) != keep {
			t.Errorf("haproxy -v with the capabilities %v: %d, %s%s", cfg.Capabilities, code, out, errOut)
		}
	}
}

// A configuration that HAProxy refuses, or that does not load, leaves the last good one in
// place, and the state has the reason.
func TestHAProxyKeepsTheLastGoodConfiguration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	before := b.up(m0, m1)
	good, err := b.Read(v1alpha1.HAProxyConf)
	testkit.Must(t, err)
	pids := b.daemons()
	cluster := testkit.ReadFile(t, "../../cmd/agentcli/testdata/cluster.yaml")
	for _, bad := range []struct{ path, data, right, want string }{
		{v1alpha1.HAProxyTemplate, plainChecks + "\nnonsense\n", plainChecks, "unknown keyword 'nonsense'"},
		{v1alpha1.HAProxyTemplate, "{{ .Nope }}", plainChecks, "can't evaluate field Nope"},
		{v1alpha1.ClusterConfigPath, "a: [", string(cluster), "yaml"},
	} {
		b.put(bad.path, bad.data)
		// On a busy machine HAProxy may answer late for a moment.
		s := b.awaitState("the refusal, and HAProxy to serve", func(s state.HAProxy) bool { return strings.Contains(s.Problem, bad.want) && s.Serving })
		if s.Restarts != 0 || s.PID != before.PID {
			t.Errorf("%s: %d restarts, process %d, before %d", bad.want, s.Restarts, s.PID, before.PID)
		}
		if now, _ := b.Read(v1alpha1.HAProxyConf); string(now) != string(good) {
			t.Errorf("%s: the configuration is\n%s", bad.want, now)
		}
		b.put(bad.path, bad.right)
		b.awaitState("no problem", func(s state.HAProxy) bool { return s.Problem == "" && s.Serving })
	}
	testkit.Equal(t, pids, b.daemons())
	// An agent that starts with a bad file continues with the last good one.
	b.kill()
	b.await("HAProxy to end", func() bool { return len(b.pids("haproxy")) == 0 })
	b.put(v1alpha1.ClusterConfigPath, "a: [")
	b.start()
	b.awaitState("HAProxy with the last good configuration", func(s state.HAProxy) bool { return s.Serving && s.Problem != "" })
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11", "master-2 192.0.2.12") // which still follows the nodes
	b.up(m0, m1, m2)
}

// Because of the file capability the kernel forgets that HAProxy is to end with its parent: in
// the pod's container it ends because its parent is process 1.
func TestHardCase24KilledAgentTakesHAProxyAlong(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	b.up(m0)
	b.signal("vipgen-agent", syscall.SIGKILL)
	b.await("HAProxy to end", func() bool { return len(b.pids("haproxy")) == 0 })
	b.awaitEnd()
	b.start()
	b.up(m0)
}

// A node that is gone keeps connections open only until its silence is detected: those through
// it are closed, in workers from before a reload too, and others stay.
func TestConnectionsToASilentServerEnd(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	b.up(m0, m1)
	var lost, kept []net.Conn // those through master-1, and the others
	dial := func() {
		t.Helper()
		for have := len(lost); len(lost) == have || len(kept) == 0; {
			if c, server := b.dial(t); server == '1' {
				lost = append(lost, c)
			} else {
				kept = append(kept, c)
			}
		}
	}
	dial()
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11", "master-2 192.0.2.12")
	b.up(m0, m1, m2)
	dial()
	gone := b.others["master-1"]
	testkit.Run(t, gone.Command(t.Context(), "ip", "link", "set", gone.Link, "down"))
	b.await("the agent to report all of them", func() bool {
		return strings.Contains(b.output(), fmt.Sprintf("connections to a silent server ended\" server=master-1 connections=%d\n", len(lost)))
	})
	for _, c := range lost {
		c.SetDeadline(time.Now().Add(waitTime))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a connection to a silent server stays")
		}
	}
	for _, c := range kept {
		if server, err := ask(c); err != nil || server == '1' {
			t.Errorf("a connection to another server: %q, %v", server, err)
		}
	}
}

// A stop lets connections end, and is announced first.
func TestHAProxyDrainsAtSIGTERM(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	b.up(m0)
	c, _ := b.dial(t)
	b.signalInit(syscall.SIGTERM)
	b.awaitState("not serving", func(s state.HAProxy) bool { return !s.Serving })
	_, err := ask(c)
	testkit.Check(t, err)
	c.Close()
	testkit.Equal(t, command.OK, b.awaitEnd())
	testkit.Empty(t, b.pids("haproxy"))
}

func TestHardCase25HAProxyWithoutIPv6(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	b.up(m0)
	conf := func() string {
		data, _ := b.Read(v1alpha1.HAProxyConf)
		return string(data)
	}
	testkit.Contains(t, conf(), "bind [::]:9445")
	b.sysctl("net/ipv6/conf/all/disable_ipv6", "1")
	b.await("a configuration without IPv6", func() bool { return conf() != "" && !strings.Contains(conf(), "[::") })
	b.up(m0)
	b.kill()
	b.await("HAProxy to end", func() bool { return len(b.pids("haproxy")) == 0 })
	b.start()
	b.up(m0)
}

// sysctl sets a value in the node's namespace.
func (s *service) sysctl(name, value string) {
	s.t.Helper()
	err := s.Do(func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0) })
	testkit.Must(s.t, err)
}
