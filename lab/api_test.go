package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/pod"
	"github.com/vipgen/vipgen/templates/manifest"
)

// awaitBackend waits until every HAProxy has a backend in that state.
func (c *cluster) awaitBackend(t *testing.T, want state.Backend) {
	t.Helper()
	for _, n := range c.masters() {
		testkit.Await(t, fmt.Sprintf("HAProxy on %s to have %+v", n.Name, want), func() bool {
			s, alive := published[state.HAProxy](n)
			return alive && slices.Contains(s.Backends, want)
		})
	}
}

func (n *node) backend(up bool) state.Backend {
	return state.Backend{Name: n.Name, Address: n.Address().String() + ":6443", Up: up}
}

func testAPIServerRestarts(t *testing.T, c *cluster) {
	n := c.holder(t, api)
	p := c.startProbe(t, api)
	n.killAPI()
	c.awaitBackend(t, n.backend(false))
	p.answers(t, 20)
	n.startAPI()
	c.awaitBackend(t, n.backend(true))
	p.answers(t, 5)
	// The request in flight when it was killed is lost.
	p.expect(t, inFlight)
	p.stays(t, n, c.holder(t, api))
}

// connection is a connection that a client keeps open.
type connection struct {
	net.Conn
	reader *bufio.Reader
}

// connect connects to the API VIP as soon as a node holds it.
func (c *cluster) connect(t *testing.T) (conn connection) {
	t.Helper()
	testkit.Await(t, "a connection to the API VIP", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
		defer cancel()
		raw, err := c.Client.DialContext(ctx, "tcp", netip.AddrPortFrom(api, 6443).String())
		if err != nil {
			return false
		}
		t.Cleanup(func() { raw.Close() })
		secure := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
		conn = connection{secure, bufio.NewReader(secure)}
		return true
	})
	return conn
}

// ask makes a request to the API over the connection.
func (c connection) ask() error {
	_, err := c.request("/readyz", "api")
	return err
}

// request makes a request over the connection, and returns the answer.
func (c connection) request(path, host string) (string, error) {
	c.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

// connections is the number of connections that a client keeps open.
const connections = 300

// A node joins the control plane and leaves it: every HAProxy is reloaded twice, without any
// effect on old or new connections. On a machine that is late itself checks time out, which
// ends connections and moves VIPs.
func testBackendComesAndGoes(t *testing.T, c *cluster) {
	var open []connection
	for range connections {
		open = append(open, c.connect(t))
	}
	broken := 0
	askAll := func(when string) {
		t.Helper()
		for i, conn := range open {
			if err := conn.ask(); err != nil {
				t.Logf("connection %d, %s: %v", i, when, err)
				broken++
				open[i] = c.connect(t)
			}
		}
	}
	p := c.startProbe(t, api)
	askAll("at first")
	const joining = "/api/v1/nodes/master-3"
	c.create("/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"master-3","labels":{"node-role.kubernetes.io/master":""}}}`)
	c.patch(joining+"/status", `{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.13"}]}}`)
	c.awaitBackend(t, state.Backend{Name: "master-3", Address: "192.0.2.13:6443"})
	askAll("with a backend more")
	c.remove(joining)
	for _, n := range c.masters() {
		testkit.Await(t, "HAProxy on "+n.Name+" to lose the backend", func() bool {
			s, alive := published[state.HAProxy](n)
			return alive && len(s.Backends) == 3
		})
	}
	askAll("without it")
	p.answers(t, 5)
	show(t, fmt.Sprintf("curl over %d connections that stay open, while a backend comes and goes", connections), fmt.Sprintf("%d closed, all others answered", broken))
	p.expect(t, 0)
	testkit.Promise(t, fmt.Sprintf("of %d connections, those that were closed", connections), broken, 0, 3*connections, p.machine.End())
}

func testRefused(t *testing.T, c *cluster) {
	n := c.backup(t)
	k := n.container(manifest.Keepalived, "keepalived")
	conf := n.read(v1alpha1.KeepalivedConf)
	c.remove(rbac + "clusterrolebindings/vipgen-agent")
	// The existing watch continues; a new one is refused.
	before := k.Status().Restarts
	testkit.Must(t, k.Signal(syscall.SIGKILL))
	testkit.Await(t, "the container to be started again", func() bool { s := k.Status(); return s.Running && s.Restarts == before+1 })
	const refusal = "the API server refuses to list nodes"
	testkit.Await(t, "a word about the missing rights", func() bool { return strings.Contains(k.Log(), refusal) })
	show(t, n.Name+"$ crictl logs keepalived   # without its rights", grep(k.Log(), refusal))
	testkit.Contains(t, grep(k.Log(), refusal), "user=system:node:"+n.Name, "manifests/clusterrolebinding.yaml")
	// The restarted agent takes no part until it receives the holder's advertisements.
	testkit.Await(t, "keepalived.conf to be as before", func() bool { return n.read(v1alpha1.KeepalivedConf) == conf },
		func() string { return n.read(v1alpha1.KeepalivedConf) })
	c.holder(t, api)
	c.must(c.grant(c.t.Context(), manifest.ClusterRoleBinding))
	const allowed = "the API server allows this node to list and watch nodes again"
	testkit.Await(t, "the rights to be back", func() bool { return strings.Contains(k.Log(), allowed) })
	show(t, "oc apply -f manifests/clusterrolebinding.yaml", grep(k.Log(), allowed))
}

// Every API server is down, and every container is killed: holders of VIPs and configurations
// stay.
func testAPIAway(t *testing.T, c *cluster) {
	before := c.configurations()
	for _, n := range c.masters() {
		n.killAPI()
	}
	restarted := map[*pod.Container]int{}
	for _, n := range c.nodes {
		for _, p := range n.Kubelet.Pods() {
			for _, k := range p.Containers {
				restarted[k] = k.Status().Restarts + 1
				testkit.Must(t, k.Signal(syscall.SIGKILL))
			}
		}
	}
	testkit.Await(t, "all containers to be started again", func() bool {
		for k, want := range restarted {
			if s := k.Status(); !s.Running || s.Restarts < want {
				return false
			}
		}
		return true
	})
	c.check(t)
	for _, n := range c.nodes {
		c.awaitDNS(t, n.Address(), "api."+domain, "A", api.String())
		c.awaitDNS(t, n.Address(), "worker-0."+domain, "A", "192.0.2.20")
	}
	// A node takes no part while the holder of its VIP still starts, until it receives
	// advertisements.
	testkit.Await(t, "all configurations to be as before", func() bool { return maps.Equal(c.configurations(), before) }, func() string {
		changed := ""
		for path, now := range c.configurations() {
			if was := before[path]; now != was {
				changed += fmt.Sprintf("%s has changed from\n%s\nto\n%s", path, was, now)
			}
		}
		return changed
	})
	for _, n := range c.masters() {
		c.must(n.API.Launch())
	}
	for _, n := range c.masters() {
		n.must(n.API.AwaitReady)
	}
	testkit.Await(t, "the API at its VIP", func() bool {
		out, err := c.run("curl", "-sk", "https://192.0.2.5:6443/readyz")
		return err == nil && out == "ok"
	})
}

// configurations returns the configurations of the daemons on all nodes.
func (c *cluster) configurations() map[string]string {
	out := map[string]string{}
	for _, n := range c.nodes {
		paths := []string{v1alpha1.KeepalivedConf, v1alpha1.Corefile, v1alpha1.HostsFile}
		if n.API != nil {
			paths = append(paths, v1alpha1.HAProxyConf)
		}
		for _, path := range paths {
			out[n.Name+":"+path] = n.read(path)
		}
	}
	return out
}
