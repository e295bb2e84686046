package reference

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/lab/testbed/pod"
)

// machine is a host with OpenShift's current pods.
type machine struct {
	*host.Host
	t       *testing.T
	facts   *v1alpha1.Node
	kubelet *pod.Kubelet
	api     *httptest.Server
	stop    func()
}

// newMachine makes the host of a node with its files, and with an API server unless it is a
// worker.
func newMachine(t *testing.T, network *netns.Network, facts *v1alpha1.Node) *machine {
	t.Helper()
	ns, err := network.AddNode(facts.Name, facts.Interfaces[0].Addresses...)
	testkit.Must(t, err)
	h, err := host.New(ns, t.TempDir())
	testkit.Must(t, err)
	testkit.Cleanup(t, h.Close)
	m := &machine{Host: h, t: t, facts: facts}
	if facts.Role != v1alpha1.RoleWorker {
		m.startAPI()
		t.Cleanup(m.stopAPI)
	}
	m.install(cluster(nil))
	return m
}

// startAPI stands in for an API server: it is ready, and its answers name the node.
func (m *machine) startAPI() {
	m.t.Helper()
	m.api = serve(m.t, m.Node, 6443, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", m.Name)
		io.WriteString(w, "ok")
	})
}

// serve stands in for a service at all addresses of a node.
func serve(t *testing.T, node *netns.Node, port int, secure bool, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	var l net.Listener
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp", fmt.Sprintf("[::]:%d", port))
		return err
	})
	testkit.Must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: handler, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}}
	if !secure {
		server.Start()
		return server
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	return server
}

func (m *machine) stopAPI() {
	if m.api != nil {
		m.api.Config.Close()
	}
	m.api = nil
}

func (m *machine) install(c *v1alpha1.ClusterConfig) {
	m.t.Helper()
	testkit.Must(m.t, Install(m.Host, c, m.facts, images))
}

// boot runs the pods until the test ends, or stop.
func (m *machine) boot() {
	m.t.Helper()
	debian := container.Image{Distribution: true}
	m.kubelet = &pod.Kubelet{
		Host: m.Host, Log: slog.New(slog.DiscardHandler),
		Images:  map[string]container.Image{images.Keepalived: debian, images.HAProxy: debian},
		BackOff: pod.BackOff{Initial: time.Second, Max: 10 * time.Second, Reset: time.Minute},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.kubelet.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		if m.t.Failed() {
			m.dump()
		}
		cancel()
		testkit.Check(testkit.In(m.t, m.Name), <-done)
	})
	m.t.Cleanup(m.stop)
}

// dump logs the output of the machine's containers.
func (m *machine) dump() {
	for _, p := range m.kubelet.Pods() {
		for _, c := range p.Containers {
			lines := strings.Split(c.Log(), "\n")
			m.t.Logf("log of %s on %s, %+v:\n%s", c.Name, m.Name, c.Status(), strings.Join(lines[max(0, len(lines)-40):], "\n"))
		}
	}
}

// powerOff is a power loss.
func (m *machine) powerOff() {
	m.t.Helper()
	testkit.Must(m.t, m.PowerOff())
	m.stop()
	m.stopAPI()
}

// holds reports whether the machine has a VIP.
func (m *machine) holds(vip netip.Addr) bool {
	m.t.Helper()
	have, err := m.Addresses()
	testkit.Must(m.t, err)
	return slices.ContainsFunc(have, func(p netip.Prefix) bool { return p.Addr() == vip })
}

// said waits until a container has printed a text.
func (m *machine) said(podName, name, text string) {
	m.t.Helper()
	testkit.Await(m.t, fmt.Sprintf("%q from %s on %s", text, name, m.Name), func() bool {
		c, err := m.kubelet.Container(podName, name)
		return err == nil && strings.Contains(c.Log(), text)
	})
}

// redirects reports whether VIPs are redirected to HAProxy, in both hooks.
func (m *machine) redirects() bool {
	m.t.Helper()
	for _, chain := range []string{"prerouting", "output"} {
		out, err := m.Command(m.t.Context(), "nft", "list", "chain", "inet", table, chain).Output()
		if err != nil || !strings.Contains(string(out), `comment "redirect"`) {
			return false
		}
	}
	return true
}

// remove removes a manifest and waits until its pod has gone.
func (m *machine) remove(name string) {
	m.t.Helper()
	p, err := m.kubelet.Pod(name)
	if err == nil {
		err = os.Remove(m.Path(v1alpha1.ManifestDir + "/" + name + ".yaml"))
	}
	testkit.Must(m.t, err)
	<-p.Gone()
}

// ask requests /readyz at an address, from a node, and returns the API server that answered, or
// "".
func ask(node *netns.Node, at netip.Addr) string {
	client := http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DialContext: node.DialContext, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		},
	}
	resp, err := client.Get("https://" + netip.AddrPortFrom(at, 6443).String() + "/readyz")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	return resp.Header.Get("Server")
}
