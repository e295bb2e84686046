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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/container"
	"github.com/vipgen/vipgen/lab/testbed/host"
	"github.com/vipgen/vipgen/lab/testbed/pod"
)

// worker is a compute node with OpenShift's current pods, and a router.
type worker struct {
	*host.Host
	t       *testing.T
	kubelet *pod.Kubelet
	router  *httptest.Server
}

// newWorker makes worker n of two, and runs its pods until the test ends.
func newWorker(t *testing.T, network *netns.Network, ca *authority.Authority, n, other int) *worker {
	t.Helper()
	facts := node("worker", n, fmt.Sprintf("worker:%d", other))
	ns, err := network.AddNode(facts.Name, facts.Interfaces[0].Addresses...)
	testkit.Must(t, err)
	h, err := host.New(ns, t.TempDir())
	testkit.Must(t, err)
	testkit.Cleanup(t, h.Close)
	pair, err := ca.Client("system:node:"+h.Name, "system:nodes")
	testkit.Must(t, err)
	testkit.Must(t, h.Write("/var/lib/kubelet/pki/kubelet-client-current.pem", pair.Both()))
	testkit.Must(t, Install(h, cluster(nil), facts, images))
	w := &worker{Host: h, t: t, router: serve(t, ns, 1936, false, func(http.ResponseWriter, *http.Request) {})}
	debian := container.Image{Distribution: true}
	w.kubelet = &pod.Kubelet{
		Host: h, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Images:  map[string]container.Image{images.Keepalived: debian, images.HAProxy: debian},
		BackOff: pod.BackOff{Initial: time.Second, Max: 10 * time.Second, Reset: time.Minute},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.kubelet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Check(t, <-done)
	})
	return w
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
	t.Cleanup(func() { server.Config.Close() })
	if !secure {
		server.Start()
		return server
	}
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	return server
}

// holds reports whether the node has the ingress VIP.
func (w *worker) holds() bool {
	w.t.Helper()
	have, err := w.Addresses()
	testkit.Must(w.t, err)
	return slices.ContainsFunc(have, func(p netip.Prefix) bool { return p.Addr() == netip.MustParseAddr("192.0.2.6") })
}

// awaitOutput waits until keepalived's container has printed a text.
func (w *worker) awaitOutput(text string) {
	w.t.Helper()
	testkit.Await(w.t, fmt.Sprintf("%q from %s", text, w.Name), func() bool {
		c, err := w.kubelet.Container("keepalived", "keepalived")
		return err == nil && strings.Contains(c.Log(), text)
	})
}

// The ingress VIP is on a node with a router of the default ingress controller, else on one
// whose router answers, else on none.
func TestIngress(t *testing.T) {
	t.Parallel()
	network := daemon.NewNetwork(t)
	// A host that has the API VIP as its own address stands in for the control plane.
	serve(t, daemon.AddNode(t, network, "control", "192.0.2.5/24", "2001:db8::5/64"), 6443, true, answerPods)
	ca, err := authority.New("kubelets")
	testkit.Must(t, err)
	first, second := newWorker(t, network, ca, 20, 21), newWorker(t, network, ca, 21, 20)
	holders := func(onFirst, onSecond bool) {
		t.Helper()
		testkit.Await(t, fmt.Sprintf("the ingress VIP on the first: %t, on the second: %t", onFirst, onSecond), func() bool {
			return first.holds() == onFirst && second.holds() == onSecond
		})
	}
	first.awaitOutput("VRRP_Script(chk_default_ingress) succeeded")
	second.awaitOutput("VRRP_Script(chk_default_ingress) failed")
	// At equal priority, the higher address would hold it.
	holders(true, false)
	first.router.Config.Close()
	holders(false, true)
	second.router.Config.Close()
	holders(false, false)
}

// answerPods lists a router of the default ingress controller on worker-20, to clients with a
// certificate that may do so, like kubelet.
func answerPods(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case r.URL.Path != "/api/v1/namespaces/openshift-ingress/pods" || len(r.TLS.PeerCertificates) == 0,
		query.Get("labelSelector") != "ingresscontroller.operator.openshift.io/deployment-ingresscontroller=default":
		w.WriteHeader(http.StatusForbidden)
	case query.Get("fieldSelector") == "spec.nodeName=worker-20":
		io.WriteString(w, `{"items":[{"metadata":{"name":"router"},"spec":{"nodeName":"worker-20"}}]}`)
	default:
		io.WriteString(w, `{"items":[]}`)
	}
}
