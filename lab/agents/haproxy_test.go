package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	template "github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/pod"
)

// plainChecks is the shipped template with health checks that need no API
// server behind the port.
var plainChecks = strings.NewReplacer("    option httpchk\n", "", "    http-check send meth GET uri /readyz hdr x-server %[srv_name]\n", "", "    http-check expect status 200\n", "", " addr 127.0.0.1 port {{ .ReadyPort }}", "").Replace(template.Template)

// balancer is a node with HAProxy under the agent, two more nodes and a client.
type balancer struct {
	*service
	others map[string]*netns.Node // by name
}

func newBalancer(t *testing.T) balancer {
	t.Helper()
	b := balancer{newService(t, pod.HAProxy, "192.0.2.10/24"), map[string]*netns.Node{}}
	b.put(v1alpha1.HAProxyTemplate, plainChecks)
	for i, a := range []string{"192.0.2.10", "192.0.2.11", "192.0.2.12"} {
		node := b.Node
		if i > 0 {
			var err error
			if node, err = b.network.AddNode("master-"+strconv.Itoa(i), netip.MustParsePrefix(a+"/24")); err != nil {
				t.Fatal(err)
			}
			b.others[node.Name] = node
		}
		echo(t, node, a+":6443", naming(byte('0'+i)))
	}
	return b
}

// naming answers every byte with one that is the server's name.
func naming(server byte) func(net.Conn) {
	return func(c net.Conn) {
		defer c.Close()
		for data := make([]byte, 100); ; {
			n, err := c.Read(data)
			if err != nil {
				return
			}
			if _, err := c.Write(bytes.Repeat([]byte{server}, n)); err != nil {
				return
			}
		}
	}
}

func (b balancer) awaitState(what string, ok func(state.HAProxy) bool) state.HAProxy {
	b.t.Helper()
	var s state.HAProxy
	b.await(what, func() bool {
		var alive bool
		s, alive = published[state.HAProxy](b.service)
		return alive && ok(s)
	})
	return s
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

func (b balancer) dial() (c net.Conn, err error) {
	err = b.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", "192.0.2.10:9445", waitTime)
		return err
	})
	return c, err
}

// asked returns the server that a connection reaches, by naming.
func asked(c net.Conn) (server byte, err error) {
	c.SetDeadline(time.Now().Add(waitTime))
	if _, err := c.Write([]byte("ping")); err != nil {
		return 0, err
	}
	answer := make([]byte, 4)
	_, err = io.ReadFull(c, answer)
	return answer[0], err
}

// echoes returns an error unless a connection echoes bytes.
func echoes(c net.Conn) error {
	_, err := asked(c)
	return err
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

// TestHardCase18BackendsChangeUnder2000Connections: none of them is reset, and no new one is
// refused meanwhile.
func TestHardCase18BackendsChangeUnder2000Connections(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	first := b.up(m0, m1)
	if errOut, code := b.probe(); code != command.OK {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	var open []net.Conn
	for i := range 2000 {
		c, err := b.dial()
		testkit.Must(testkit.In(t, i), err)
		defer c.Close()
		open = append(open, c)
		testkit.Must(testkit.In(t, i), echoes(c))
	}
	stop := make(chan struct{})
	var made, failed atomic.Int64
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c, err := b.dial()
				if err == nil {
					err = echoes(c)
					c.Close()
				}
				if err != nil {
					failed.Add(1)
					t.Errorf("a connection during the reloads: %v", err)
					return
				}
				made.Add(1)
			}
		})
	}
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.11", "master-2 192.0.2.12")
	b.up(m0, m1, m2)
	// Hard case 15: a backend keeps its name and changes its address.
	b.nodes("master-0 192.0.2.10", "master-1 192.0.2.12")
	last := b.up(m0, "master-1=192.0.2.12:6443")
	close(stop)
	clients.Wait()
	for i, c := range open {
		testkit.Must(testkit.In(t, i), echoes(c))
	}
	if last.Reloads < first.Reloads+2 || last.Restarts != 0 || made.Load() == 0 {
		t.Errorf("%d reloads, then %d; %d restarts; %d connections made", first.Reloads, last.Reloads, last.Restarts, made.Load())
	}
	t.Logf("%d connections kept, %d made during %d reloads, %d failed", len(open), made.Load(), last.Reloads-first.Reloads, failed.Load())
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

func TestHAProxyIsRestarted(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	s := b.up(m0)
	b.exec("sh", "-c", "kill -KILL "+strconv.Itoa(s.PID))
	b.awaitState("HAProxy to serve again", func(now state.HAProxy) bool { return now.Serving && now.PID != 0 && now.PID != s.PID })
	b.daemons()
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
	// dial opens connections until there are two more through master-1, and some others. A busy
	// machine distributes them irregularly: HAProxy treats a late server like one that does not
	// answer.
	dial := func() {
		t.Helper()
		for want, others := len(lost)+2, len(kept); len(lost) < want || len(kept) == others; {
			c, err := b.dial()
			testkit.Must(t, err)
			t.Cleanup(func() { c.Close() })
			server, err := asked(c)
			testkit.Must(t, err)
			c.SetDeadline(time.Time{})
			if server == '1' {
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
	var ended atomic.Int64
	var reading sync.WaitGroup
	for _, c := range lost {
		reading.Go(func() {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				ended.Add(1)
			}
		})
	}
	gone := b.others["master-1"]
	testkit.Run(t, gone.Command(t.Context(), "ip", "link", "set", gone.Link, "down"))
	began := time.Now()
	b.await("its connections to end", func() bool { return int(ended.Load()) == len(lost) })
	t.Logf("connections ended after %v", time.Since(began))
	b.await("the agent to say that it ended them", func() bool {
		return strings.Contains(b.output(), fmt.Sprintf("connections to a silent server ended\" server=master-1 connections=%d\n", len(lost)))
	})
	reading.Wait()
	for _, c := range kept {
		if server, err := asked(c); err != nil || server == '1' {
			t.Errorf("a connection to another server: %q, %v", server, err)
		}
	}
}

// A stop lets connections end, and is announced first.
func TestHAProxyDrainsAtSIGTERM(t *testing.T) {
	b := newBalancer(t)
	b.nodes("master-0 192.0.2.10")
	b.up(m0)
	c, err := b.dial()
	testkit.Must(t, err)
	defer c.Close()
	testkit.Must(t, echoes(c))
	b.signalInit(syscall.SIGTERM)
	b.awaitState("not serving", func(s state.HAProxy) bool { return !s.Serving })
	testkit.Check(t, echoes(c))
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
