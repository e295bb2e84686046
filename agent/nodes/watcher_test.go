package nodes

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/apitest"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func await(t testing.TB, log *logBuffer, what string, condition func() bool) {
	t.Helper()
	testkit.Await(t, what, condition, func() string { return "the log:\n" + log.String() })
}

// host is the node master-0, on which one watcher runs after another.
type host struct {
	t     testing.TB
	ca    *authority.Authority
	api   *apitest.APIServer
	dir   string
	opts  nodelist.Options
	log   *logBuffer
	saved string // path of the state
}

func newHost(t testing.TB, api *apitest.APIServer) *host {
	t.Helper()
	h := &host{t: t, ca: api.CA, api: api, dir: t.TempDir()}
	h.saved = filepath.Join(h.dir, "nodes.json")
	h.opts = nodelist.Options{
		Node: "master-0", Role: "master",
		Cluster:   &v1alpha1.ClusterConfig{Metadata: v1alpha1.ClusterMetadata{Name: "demo"}, Spec: *testSpec(int(api.Addr.Port()))},
		StateFile: h.saved,
		Quiet:     20 * time.Millisecond, MaxDelay: 200 * time.Millisecond,
	}
	h.rotate()
	return h
}

// rotate replaces the certificate of the node.
func (h *host) rotate() {
	h.t.Helper()
	h.opts.Kubeconfig = apitest.NodeKubeconfig(h.t, h.dir, h.ca, h.opts.Node, fmt.Sprintf("api-int.demo.example.com:%d", h.opts.Cluster.Spec.Ports.API))
}

// certificate returns the path of the node's client certificate.
func (h *host) certificate() string { return filepath.Join(h.dir, "pki", "kubelet-client-current.pem") }

// run starts a watcher and returns it with a function that stops it and waits for its end.
func (h *host) run() (w *Watcher, stop func()) {
	h.t.Helper()
	h.log = &logBuffer{}
	h.opts.Log = slog.New(slog.NewTextHandler(h.log, nil))
	w, err := New(h.opts)
	testkit.Must(h.t, err)
	w.client.reload, w.client.probe, w.client.refused = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	stop = func() {
		cancel()
		select {
		case <-done:
		case <-time.After(testkit.Patience):
			h.t.Error("the watcher does not end")
		}
	}
	h.t.Cleanup(stop)
	return w, stop
}

// awaitPeers waits until the snapshot has these peers, as "name=address,address", and is stale
// or not.
func (h *host) awaitPeers(w *Watcher, stale bool, want ...string) {
	h.t.Helper()
	await(h.t, h.log, fmt.Sprintf("peers %v, stale %v", want, stale), func() bool {
		s, ok := w.Current()
		return ok && s.Stale == stale && slices.Equal(describe(s.Peers), want)
	})
}

// awaitLines waits until the log has a number of lines with a text, and fails the test if it has
// more: lines are logged after the state is known.
func (h *host) awaitLines(text string, times int) {
	h.t.Helper()
	await(h.t, h.log, fmt.Sprintf("%d lines with %q", times, text), func() bool { return h.log.lines(text) >= times })
	testkit.Equal(testkit.In(h.t, text, h.log), times, h.log.lines(text))
}

func describe(peers []v1alpha1.Peer) []string {
	var out []string
	for _, p := range peers {
		var a []string
		for _, addr := range p.Addresses {
			a = append(a, addr.String())
		}
		out = append(out, p.Name+"="+strings.Join(a, ","))
	}
	return out
}

func TestWatch(t *testing.T) {
	c := newCluster(t)
	c.set("worker-0", "192.0.2.20", `"node-role.kubernetes.io/worker":""`)
	h := newHost(t, c.api.Replica("127.0.0.1"))
	w, _ := h.run()
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	snapshots := w.Subscribe(t.Context())
	if s, _ := w.Current(); s.Registered {
		t.Error("registered before it is in the list") // hard case 3
	}

	c.set("master-0", "192.0.2.10", masterLabels+`,"example.com/rack":"r1"`)
	await(t, h.log, "registration", func() bool { s, _ := w.Current(); return s.Registered })
	s, _ := w.Current()
	if s.Self.Role != "master" || s.Self.Labels["node-role.kubernetes.io/master"] != "" {
		t.Errorf("self: %+v", s.Self)
	}

	// Hard case 15: the name stays, the address changes.
	c.move("worker-0", "192.0.2.21")
	h.awaitPeers(w, false, "worker-0=192.0.2.21")
	h.awaitLines("moved=worker-0", 1) // once

	// A VIP of the cluster is never an address, as soon as it is a VIP.
	next := *h.opts.Cluster
	next.Spec.Groups = []v1alpha1.Group{{VIPs: []netip.Addr{netip.MustParseAddr("192.0.2.21")}}}
	w.SetCluster(&next)
	h.awaitPeers(w, false, "worker-0=")

	c.api.Delete("/api/v1/nodes/worker-0")
	h.awaitPeers(w, false)
	for s := range snapshots { // a slow reader gets the latest
		if s.Registered && len(s.Peers) == 0 {
			break
		}
	}
}

func TestHardCase05LocalServerFirst(t *testing.T) {
	c := newCluster(t)
	c.set("master-0", "192.0.2.10", masterLabels)
	local := c.api.Replica("127.0.0.1")
	peer := c.api.Replica("127.0.0.2")
	h := newHost(t, local)
	h.opts.Cluster.Spec.Peers = []v1alpha1.Peer{{Name: "master-1", Role: "master", Addresses: testkit.Addrs("127.0.0.2")}}
	here, there := fmt.Sprintf("https://localhost:%d", local.Addr.Port()), "https://"+peer.Addr.String()
	w, stop := h.run()
	from := func(server string) {
		t.Helper()
		await(t, h.log, "reading from "+server, func() bool { return w.server() == server })
	}
	h.awaitPeers(w, false)
	from(here)

	local.Kill()
	from(there)
	c.set("worker-0", "192.0.2.20", "")
	h.awaitPeers(w, false, "worker-0=192.0.2.20")

	local.Start() // it is preferred again before the peer's fails
	from(here)
	c.set("worker-1", "192.0.2.21", "")
	h.awaitPeers(w, false, "worker-0=192.0.2.20", "worker-1=192.0.2.21")

	const nobody = "no API server answers"
	before := h.log.lines(nobody) // possible on a machine that was late
	local.Kill()
	peer.Kill()
	h.awaitPeers(w, true, "worker-0=192.0.2.20", "worker-1=192.0.2.21")
	h.awaitLines(nobody, before+1)
	c.api.Delete("/api/v1/nodes/worker-1")
	peer.Start()
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	stop()
	// The kubeconfig names the VIP, from which a control-plane node never reads.
	testkit.Equal(t, 0, h.log.lines("api-int.demo.example.com"))
}

// A server that does not answer vouches for nothing: client-go returns a watch for it, without an error.
func TestSilentServer(t *testing.T) {
	c := newCluster(t)
	first, second := c.api.Replica("127.0.0.1"), c.api.Replica("127.0.0.2")
	h := newHost(t, first)
	h.opts.Cluster.Spec.Peers = []v1alpha1.Peer{{Name: "master-1", Role: "master", Addresses: testkit.Addrs("127.0.0.2")}}
	w, _ := h.run()
	h.awaitPeers(w, false)
	await(t, h.log, "a watch", func() bool { reachable, _ := w.client.contacted(); return reachable })
	c.set("worker-0", "192.0.2.20", "") // a watch with an event is followed by another one, and not by a list
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	second.Freeze()
	defer second.Thaw()
	first.Kill()
	h.awaitPeers(w, true, "worker-0=192.0.2.20")
	h.awaitLines("no API server answers", 1)
	h.awaitLines("reading from API server", 1)
}

// The list counts for vouchTime while servers are asked again, unless one refuses the credentials,
// also for something else, or another host claims a VIP.
func TestDoubt(t *testing.T) {
	h := newHost(t, newCluster(t).api.Replica("127.0.0.1"))
	h.opts.Log = slog.New(slog.DiscardHandler)
	refused := apierrors.NewUnauthorized("expired")
	for name, tt := range map[string]struct {
		err, other error           // of the request for Nodes, and of one for something else meanwhile
		claims     []time.Duration // after the request
		takes      time.Duration
		want       []bool
	}{
		"answer":             {nil, nil, nil, vouchTime - 1, []bool{true}},
		"late answer":        {nil, nil, nil, vouchTime + 1, []bool{false, true}},
		"another error":      {io.EOF, nil, nil, vouchTime - 1, []bool{false}},
		"refused":            {refused, nil, nil, vouchTime - 1, []bool{false, false}},
		"other refused":      {nil, refused, nil, vouchTime - 1, []bool{false, true}},
		"other fails":        {nil, io.EOF, nil, vouchTime - 1, []bool{true}},
		"claimed before":     {nil, nil, []time.Duration{1 - vouchTime}, claimedTime - 1, []bool{true}},
		"late after a claim": {nil, nil, []time.Duration{1 - vouchTime}, claimedTime + 1, []bool{false, true}},
		"claimed long ago":   {nil, nil, []time.Duration{-vouchTime}, vouchTime - 1, []bool{true}},
		"claimed meanwhile":  {nil, nil, []time.Duration{time.Second}, time.Second + claimedTime + 1, []bool{false, true}},
		"claimed often":      {nil, nil, []time.Duration{0, claimedTime / 2, claimedTime - 1}, claimedTime + 1, []bool{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := New(h.opts)
			testkit.Must(t, err)
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []bool
				r := &resource[nodeObject]{client: w.client, identity: true, reached: func(is bool) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, is)
				}, refusals: refusals{log: h.opts.Log}}
				ask := func(err error) func(*rest.RESTClient, string) error {
					return func(*rest.RESTClient, string) error { return err }
				}
				for _, at := range tt.claims {
					if at < 0 {
						w.Confirm()
						time.Sleep(-at)
					} else {
						time.AfterFunc(at, w.Confirm)
					}
				}
				err := r.try(t.Context(), "list", func(*rest.RESTClient, string) error {
					_ = w.client.try(t.Context(), ask(tt.other))
					time.Sleep(tt.takes)
					return tt.err
				})
				testkit.Equal(t, tt.err != nil, err != nil)
				_ = w.client.try(t.Context(), ask(refused)) // nothing is asked for Nodes now
				time.Sleep(2 * vouchTime)
				synctest.Wait()
				testkit.Equal(t, tt.want, got)
			})
		})
	}
}

func TestRotation(t *testing.T) {
	c := newCluster(t)
	c.set("worker-0", "192.0.2.20", "")
	server := c.api.Replica("127.0.0.1")
	server.Kill()
	server.Launch() // no connection has asked whether it is ready
	h := newHost(t, server)
	w, stop := h.run()
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	for i := 1; i <= 6; i++ {
		before := connections(t, server)
		if i < 6 {
			h.rotate()
		} else {
			w.Confirm()
		}
		await(t, h.log, "a connection in place of the one before", func() bool {
			now := connections(t, server)
			return len(now) == 1 && !slices.Contains(before, now[0])
		})
		addr := fmt.Sprintf("192.0.2.%d", 20+i)
		c.move("worker-0", addr)
		h.awaitPeers(w, false, "worker-0="+addr)
	}
	// Any host can have the list confirmed: soon after, that has no effect.
	before := connections(t, server)
	w.Confirm()
	c.move("worker-0", "192.0.2.25")
	h.awaitPeers(w, false, "worker-0=192.0.2.25")
	testkit.Equal(t, before, connections(t, server))
	// The server sees the new certificate.
	testkit.Must(t, kubeapi.ExpireKubeconfig("/", h.dir, h.ca, h.opts.Node))
	h.awaitPeers(w, true, "worker-0=192.0.2.25")
	h.rotate()
	h.awaitPeers(w, false, "worker-0=192.0.2.25")
	await(t, h.log, "a single connection", func() bool { return len(connections(t, server)) == 1 })

	// Files that do not match, or are empty, as while they are replaced, change nothing, even
	// where a new connection is needed.
	current := h.certificate()
	testkit.Must(t, os.Remove(current))
	pair, err := h.ca.Client("system:node:master-0")
	testkit.Must(t, err)
	for i, text := range []string{"", string(pair.Cert)} {
		rotated := h.log.lines("credentials rotated")
		testkit.Must(t, os.WriteFile(current, []byte(text), 0o600))
		await(t, h.log, "a complaint", func() bool { return h.log.lines("cannot use the kubeconfig") > 0 })
		server.Kill()
		server.Launch()
		addr := fmt.Sprintf("192.0.2.%d", 98+i)
		c.move("worker-0", addr)
		h.awaitPeers(w, false, "worker-0="+addr)
		testkit.Equal(testkit.In(t, "credentials from a file that has none"), rotated, h.log.lines("credentials rotated"))
	}
	stop()
	await(t, h.log, "no connection", func() bool { return len(connections(t, server)) == 0 })
}

// connections returns this machine's ends of connections to a server, from proc(5).
func connections(t testing.TB, s *apitest.APIServer) (out []string) {
	t.Helper()
	ip := s.Addr.Addr().As4()
	to := fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), s.Addr.Port())
	for line := range strings.Lines(string(testkit.ReadFile(t, "/proc/net/tcp"))) {
		if f := strings.Fields(line); f[2] == to && f[3] == "01" { // established
			out = append(out, f[1])
		}
	}
	return out
}

func TestHardCase19StateOnDisk(t *testing.T) {
	c := newCluster(t)
	c.set("master-0", "192.0.2.10", masterLabels)
	c.set("master-1", "192.0.2.11", masterLabels)
	server := c.api.Replica("127.0.0.1")
	h := newHost(t, server)
	w, stop := h.run()
	h.awaitPeers(w, false, "master-1=192.0.2.11")
	await(t, h.log, "the state on disk", func() bool { _, err := os.Stat(h.saved); return err == nil })
	stop()
	before := testkit.ReadFile(t, h.saved)
	written := stat(t, h.saved)
	w, stop = h.run()
	h.awaitPeers(w, false, "master-1=192.0.2.11")
	stop()
	if !os.SameFile(written, stat(t, h.saved)) {
		t.Error("the file was written again with the same content")
	}
	server.Kill()

	w, stop = h.run()
	if _, ok := w.Current(); !ok { // before any decision without it
		t.Error("nothing is known at once")
	}
	h.awaitPeers(w, true, "master-1=192.0.2.11")
	if s, _ := w.Current(); !s.Registered || s.Self.Role != "master" {
		t.Errorf("from disk: %+v", s)
	}
	await(t, h.log, "a failed attempt", func() bool { return h.log.lines("does not answer") > 0 })
	after, _ := os.ReadFile(h.saved)
	testkit.Equal(t, string(before), string(after))
	// The API's list wins as soon as it is back.
	c.api.Delete("/api/v1/nodes/master-1")
	server.Start()
	h.awaitPeers(w, false)
	stop()

	// A file that is not a state is ignored, and logged.
	server.Kill()
	testkit.Must(t, os.WriteFile(h.saved, []byte("{"), 0o600))
	w, _ = h.run()
	await(t, h.log, "a complaint", func() bool { return h.log.lines("invalid parts of the last known state") == 1 })
	if s, ok := w.Current(); ok {
		t.Errorf("a snapshot from a broken file: %+v", s)
	}
}

func stat(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	testkit.Must(t, err)
	return info
}

func TestHardCase22Refused(t *testing.T) {
	c := newCluster(t)
	c.set("worker-0", "192.0.2.20", "")
	h := newHost(t, c.api.Replica("127.0.0.1"))
	w, _ := h.run()
	h.awaitPeers(w, false, "worker-0=192.0.2.20")
	// It is in no group with rights.
	pair, err := h.ca.Client("system:node:master-0")
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(h.certificate()+".new", pair.Both(), 0o600))
	testkit.Must(t, os.Rename(h.certificate()+".new", h.certificate()))
	h.awaitPeers(w, true, "worker-0=192.0.2.20")
	h.rotate()
	c.move("worker-0", "192.0.2.21")
	h.awaitPeers(w, false, "worker-0=192.0.2.21")
	for _, want := range []string{"the API server refuses", "list and watch nodes again", `user=system:node:master-0`, "manifests/clusterrole.yaml", `verbs [get list watch]`} {
		h.awaitLines(want, 1)
	}
}

// cluster changes objects through an API server.
type cluster struct{ api *apitest.APIServer }

// newCluster makes a cluster without nodes, in a test that runs next to others. No node knows its API server, and the servers that
// a test ends are replicas.
func newCluster(t *testing.T) cluster {
	t.Parallel()
	return cluster{apitest.NewStandIn(t, "demo.example.com", "127.0.0.9")}
}

// set registers a node as its kubelet does.
func (c cluster) set(name, addr, labels string) {
	c.api.Create("/api/v1/nodes", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{%s}},
		"status":{"addresses":[%s]}}`, name, labels, internal(addr)))
}

// move changes a node's address as its kubelet does.
func (c cluster) move(name, addr string) {
	c.api.Patch("/api/v1/nodes/"+name+"/status", []byte(`{"status":{"addresses":[`+internal(addr)+`]}}`))
}

// logBuffer gathers a log.
type logBuffer struct{ testkit.Log }

// lines counts the lines with a text.
func (l *logBuffer) lines(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// server returns the base URL of the API server that answered last; it is empty
// while none does.
func (w *Watcher) server() string {
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	return w.client.inUse
}
