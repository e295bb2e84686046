package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// testServer is a Server that runs.
type testServer struct {
	t     *testing.T
	port  atomic.Int64
	looks atomic.Int64 // at the port
	log   testkit.Log
}

// server runs a Server until the test ends.
func server(t *testing.T, s *Server) *testServer {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	r := &testServer{t: t}
	s.Poll = 5 * time.Millisecond
	s.Port = func() int {
		r.looks.Add(1)
		return int(r.port.Load())
	}
	s.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return r
}

// serves waits until the Server serves at a free port, which it returns.
func (r *testServer) serves() (port int) {
	r.t.Helper()
	port = int(daemon.FreePort(r.t).Port())
	r.port.Store(int64(port))
	r.awaitCode(port, "/healthz", http.StatusOK)
	return port
}

// awaitCode waits until a request at 127.0.0.1 has a status, 0 for none.
func (r *testServer) awaitCode(port int, path string, want int) {
	r.t.Helper()
	testkit.Await(r.t, fmt.Sprintf("%d at %s", want, path), func() bool { code, _, _ := get(r.t, "127.0.0.1", port, path); return code == want })
}

// logged compares the number of lines with a text.
func (r *testServer) logged(text string, want int) {
	r.t.Helper()
	testkit.Await(r.t, text, func() bool { return strings.Count(r.log.String(), text) >= want })
	testkit.Equal(testkit.In(r.t, text), want, strings.Count(r.log.String(), text))
}

// get sends a request on a new connection.
func get(t *testing.T, host string, port int, path string) (code int, body string, err error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: testkit.Patience}
	resp, err := client.Get(fmt.Sprintf("http://%s%s", net.JoinHostPort(host, fmt.Sprint(port)), path))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestHealthAndMetrics(t *testing.T) {
	var wrong atomic.Pointer[string]
	var asked atomic.Int64
	r := server(t, &Server{
		Metrics: []prometheus.Collector{collector{}},
		Health: func(context.Context) error {
			asked.Add(1)
			if w := wrong.Load(); w != nil {
				return errors.New(*w)
			}
			return nil
		},
	})
	number := r.serves()
	hosts := []string{"127.0.0.1"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil { // as the kernel has it
		l.Close()
		hosts = append(hosts, "::1")
	}
	began := time.Now()
	for _, host := range hosts { // one begins to listen after the other
		testkit.Await(t, host, func() bool {
			code, body, _ := get(t, host, number, "/healthz")
			return code == http.StatusOK && body == "ok\n"
		})
	}
	code, body, err := get(t, "127.0.0.1", number, "/metrics")
	for _, want := range []string{"vipgen_healthy 1", `vipgen_daemon_restarts_total{daemon="haproxy"} 3`, "go_goroutines ", "process_resident_memory_bytes "} {
		testkit.Contains(testkit.In(t, code, err), body, want)
	}
	took := time.Since(began)
	if n, most := asked.Load(), 1+int64(took/fresh); n < 1 || n > most {
		t.Errorf("the job was asked %d times within %v, want %d at most", n, took, most)
	}
	why := "haproxy does not run"
	wrong.Store(&why)
	r.awaitCode(number, "/healthz", http.StatusServiceUnavailable)
	_, body, _ = get(t, "127.0.0.1", number, "/healthz")
	testkit.Equal(t, why+"\n", body)
	for path, want := range map[string]int{"/": http.StatusNotFound, "/debug/pprof/": http.StatusNotFound, "/healthz": http.StatusServiceUnavailable} {
		code, _, _ := get(t, "127.0.0.1", number, path)
		testkit.Equal(testkit.In(t, path), want, code)
	}
	r.logged("level=", 1)
}

// collector is a job with a daemon.
type collector struct{}

func (collector) Describe(to chan<- *prometheus.Desc) { DaemonFamilies.Describe(to) }

func (collector) Collect(to chan<- prometheus.Metric) {
	CollectDaemon(to, "haproxy", true, &state.Daemon{Restarts: 3})
}

// A port that another program occupies is logged once, whatever the number of attempts, and
// bound when it is free; a change of the port is followed.
func TestPorts(t *testing.T) {
	s := &Server{Health: func(context.Context) error { return nil }}
	r := server(t, s)
	at := daemon.FreePort(t)
	taken, other := int(at.Port()), listen(t, at.String())
	r.port.Store(int64(taken))
	const inUse = "address already in use"
	r.logged(inUse, 1)
	before := r.looks.Load()
	testkit.Await(t, "more attempts", func() bool { return r.looks.Load() >= before+10 })
	other.Close()
	r.awaitCode(taken, "/healthz", http.StatusOK)
	next := r.serves()
	r.awaitCode(taken, "/healthz", 0)
	r.port.Store(0)
	r.awaitCode(next, "/healthz", 0)
	r.logged(inUse, 1)
	r.logged("level=", 3)
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// The metrics, and nothing else, are served at an address of the node while the node has the
// address and the cluster asks for them there.
func TestAddresses(t *testing.T) {
	var outside atomic.Pointer[[]netip.Addr]
	own := []netip.Addr{netip.MustParseAddr("127.0.0.2")} // Linux has all of 127.0.0.0/8
	outside.Store(&own)
	s := &Server{Health: func(context.Context) error { return nil }, Version: "v1.2.3", Revision: "abc", Addresses: func() []netip.Addr { return *outside.Load() }}
	r := server(t, s)
	number := r.serves()
	if code, body, err := get(t, "127.0.0.2", number, "/metrics"); code != http.StatusOK || !strings.Contains(body, `vipgen_build_info{revision="abc",version="v1.2.3"} 1`) || !strings.Contains(body, "vipgen_clock_timestamp_seconds ") {
		t.Errorf("%d %v\n%s", code, err, body)
	}
	for _, path := range []string{"/healthz", "/", "/debug/pprof/"} {
		code, _, _ := get(t, "127.0.0.2", number, path)
		testkit.Equal(testkit.In(t, path), http.StatusNotFound, code)
	}
	_, _, err := get(t, "127.0.0.3", number, "/metrics")
	testkit.Fails(testkit.In(t, "another address"), err, "")
	other := []netip.Addr{netip.MustParseAddr("192.0.2.10")} // not on this machine
	outside.Store(&other)
	r.logged("cannot assign requested address", 1)
	_, _, err = get(t, "127.0.0.2", number, "/metrics")
	testkit.Fails(testkit.In(t, "the address of before"), err, "")
	code, _, _ := get(t, "127.0.0.1", number, "/healthz")
	testkit.Equal(testkit.In(t, "loopback"), http.StatusOK, code)
	outside.Store(new([]netip.Addr))
	r.logged("health served", 2)
}

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// Connections are closed after their request, and idle ones after headerTime.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on := make(pipes)
		s := serve(on, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		for request, want := range map[string]time.Duration{"GET / HTTP/1.1\r\nHost: x\r\n\r\n": 0, "": headerTime} {
			c, server := net.Pipe()
			on <- server
			began := time.Now()
			_, err := io.WriteString(c, request)
			testkit.Must(t, err)
			answer, err := io.ReadAll(c) // until the connection is closed
			if took := time.Since(began); err != nil || took != want || request != "" && !bytes.Contains(answer, []byte("Connection: close")) {
				t.Errorf("%q: %v after %v, want %v: %s", request, err, took, want, answer)
			}
		}
		s.server.Close()
		<-s.done
	})
}
