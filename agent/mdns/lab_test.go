package mdns

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

type lab struct {
	t       *testing.T
	network *netns.Network
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{t, daemon.NewNetwork(t)}
}

func (l *lab) add(name string, prefixes ...string) *netns.Node {
	l.t.Helper()
	return daemon.AddNode(l.t, l.network, name, prefixes...)
}

// ip runs iproute2 in the node.
func (l *lab) ip(node *netns.Node, args ...string) {
	l.t.Helper()
	testkit.Run(l.t, node.Command(context.Background(), "ip", args...))
}

// do calls f inside the node's namespace.
func (l *lab) do(node *netns.Node, f func() error) {
	l.t.Helper()
	testkit.Must(l.t, node.Do(f))
}

// withoutIPv6 switches IPv6 off in the node.
func (l *lab) withoutIPv6(node *netns.Node) {
	l.t.Helper()
	l.do(node, func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", []byte("1"), 0) })
}

// proc is a process with a Publisher or a Resolver, without any capability. It runs at nice
// -20, as on a node: a host has 250 ms to defend its name.
type proc struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.Writer
	done chan struct{}
	// begun is closed at the first report.
	begun chan struct{}

	mu    sync.Mutex
	state stateReport
	hosts []state.Host
	log   bytes.Buffer
}

func (l *lab) publish(node *netns.Node, host string, addresses []netip.Addr) *proc {
	l.t.Helper()
	return l.start(node, addresses, roleEnv+"=publisher", hostEnv+"="+host)
}

func (l *lab) resolve(node *netns.Node, addresses []netip.Addr) *proc {
	l.t.Helper()
	return l.start(node, addresses, roleEnv+"=resolver")
}

func (l *lab) start(node *netns.Node, addresses []netip.Addr, env ...string) *proc {
	l.t.Helper()
	self, err := os.Executable()
	testkit.Must(l.t, err)
	p := &proc{t: l.t, done: make(chan struct{})}
	args := slices.Concat([]string{"--bounding-set=-all", "--no-new-privs", "--pdeathsig=KILL", "env"}, env, []string{self})
	p.cmd = node.Command(context.Background(), "nice", append([]string{"-n", "-20", "setpriv"}, args...)...)
	p.cmd.Stderr = os.Stderr
	out, err1 := p.cmd.StdoutPipe()
	in, err2 := p.cmd.StdinPipe()
	if err1 != nil || err2 != nil {
		l.t.Fatal(err1, err2)
	}
	p.in = in
	testkit.Must(l.t, p.cmd.Start())
	p.begun = make(chan struct{})
	go p.follow(out)
	l.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if l.t.Failed() {
			l.t.Logf("output of %s in %s:\n%s", env[0], node.Name, &p.log)
		}
	})
	p.send(addresses)
	return p
}

func (p *proc) follow(out io.Reader) {
	defer close(p.done)
	begun := sync.OnceFunc(func() { close(p.begun) })
	for decoder := json.NewDecoder(out); ; {
		var r report
		if decoder.Decode(&r) != nil {
			break
		}
		begun()
		p.mu.Lock()
		if r.State != nil {
			p.state = *r.State
		} else if r.Complain == "" {
			p.hosts = r.Hosts
		}
		json.NewEncoder(&p.log).Encode(r)
		p.mu.Unlock()
	}
	p.cmd.Wait()
}

// send sends the node's addresses to the process.
func (p *proc) send(addresses []netip.Addr) {
	p.t.Helper()
	testkit.Must(p.t, json.NewEncoder(p.in).Encode(addresses))
}

func (p *proc) published() bool { return p.now().Published }

func (p *proc) now() stateReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// hasHost reports whether the host is known with exactly these addresses.
func (p *proc) hasHost(host string, addresses ...netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hosts {
		if h.Name == host {
			return slices.Equal(h.Addresses, addresses)
		}
	}
	return len(addresses) == 0
}

// end sends the signal and waits for the end of the process.
func (p *proc) end(signal syscall.Signal) {
	p.t.Helper()
	p.cmd.Process.Signal(signal)
	select {
	case <-p.done:
	case <-time.After(testkit.Patience):
		p.t.Fatalf("the process outlived %v", signal)
	}
}

// until polls a condition until it holds, and returns how long that took.
func until(t *testing.T, what string, condition func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !condition() {
		if time.Since(start) > testkit.Patience {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(start)
}
