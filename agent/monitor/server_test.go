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
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// patient bounds what takes milliseconds on an idle machine.
const patient = time.Minute

// lines collects the log of a Server.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// await returns the next line, which contains the words.
func (l lines) await(t *testing.T, words string) {
	t.Helper()
	select {
	case line := <-l:
		if !strings.Contains(line, words) {
			t.Fatalf("logged %q, want %q", line, words)
		}
	case <-time.After(patient):
		t.Fatalf("%q is not logged", words)
	}
}

// none checks that nothing more was logged.
func (l lines) none(t *testing.T) {
	t.Helper()
	select {
	case line := <-l:
		t.Errorf("logged %q", line)
	default:
	}
}

// testServer is a Server that runs.
type testServer struct {
	port  atomic.Int64
	looks atomic.Int64 // at the port
	log   lines
}

// server runs a Server until the test ends.
func server(t *testing.T, s *Server) *testServer {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	r := &testServer{log: make(lines, 100)}
	s.Poll = 5 * time.Millisecond
	s.Port = func() int {
		r.looks.Add(1)
		return int(r.port.Load())
	}
	s.Log = slog.New(slog.NewTextHandler(r.log, nil))
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

// get sends a request on a new connection.
func get(t *testing.T, host string, port int, path string) (code int, body string, err error) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patient}
	resp, err := client.Get(fmt.Sprintf("http://%s%s", net.JoinHostPort(host, fmt.Sprint(port)), path))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

// freePort returns a port that no other program listens on, also after the listener is closed.
func freePort(t *testing.T) (port int, l net.Listener) {
	t.Helper()
	at := daemon.FreePort(t)
	l, err := net.Listen("tcp", at.String())
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return int(at.Port()), l
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
	number, l := freePort(t)
	l.Close()
	r.port.Store(int64(number))
	r.log.await(t, "health served")
	hosts := []string{"127.0.0.1"}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil { // as the kernel has it
		l.Close()
		hosts = append(hosts, "::1")
	}
	began := time.Now()
	for _, host := range hosts {
		if code, body, err := get(t, host, number, "/healthz"); code != http.StatusOK || body != "ok\n" {
			t.Errorf("%s: %d %q %v", host, code, body, err)
		}
	}
	code, body, err := get(t, "127.0.0.1", number, "/metrics")
	for _, want := range []string{"vipgen_healthy 1", `vipgen_daemon_restarts_total{daemon="haproxy"} 3`, "go_goroutines ", "process_resident_memory_bytes "} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics has no %q: %d %v", want, code, err)
		}
	}
	took := time.Since(began)
	if n, most := asked.Load(), 1+int64(took/fresh); n < 1 || n > most {
		t.Errorf("the job was asked %d times within %v, want %d at most", n, took, most)
	}
	why := "haproxy does not run"
	wrong.Store(&why)
	for deadline := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
		code, body, err := get(t, "127.0.0.1", number, "/healthz")
		if code == http.StatusServiceUnavailable && body == why+"\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d %q %v", code, body, err)
		}
	}
	for path, want := range map[string]int{"/": http.StatusNotFound, "/debug/pprof/": http.StatusNotFound, "/healthz": http.StatusServiceUnavailable} {
		if code, _, _ := get(t, "127.0.0.1", number, path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	r.log.none(t)
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
	taken, other := freePort(t)
	r.port.Store(int64(taken))
	r.log.await(t, "address already in use")
	for before := r.looks.Load(); r.looks.Load() < before+10; time.Sleep(time.Millisecond) {
	}
	r.log.none(t)
	other.Close()
	r.log.await(t, "health served")
	if code, _, err := get(t, "127.0.0.1", taken, "/healthz"); code != http.StatusOK {
		t.Errorf("%d %v", code, err)
	}
	next, l := freePort(t)
	l.Close()
	r.port.Store(int64(next))
	r.log.await(t, "health served")
	if code, _, err := get(t, "127.0.0.1", next, "/healthz"); code != http.StatusOK {
		t.Errorf("%d %v", code, err)
	}
	if _, _, err := get(t, "127.0.0.1", taken, "/healthz"); err == nil {
		t.Error("the old port still answers")
	}
	r.port.Store(0)
	for deadline := time.Now().Add(patient); ; time.Sleep(time.Millisecond) {
		if _, _, err := get(t, "127.0.0.1", next, "/healthz"); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it still answers without a port")
		}
	}
	r.log.none(t)
}

// The metrics, and nothing else, are served at an address of the node while the node has the
// address and the cluster asks for them there.
func TestAddresses(t *testing.T) {
	var outside atomic.Pointer[[]netip.Addr]
	own := []netip.Addr{netip.MustParseAddr("127.0.0.2")} // Linux has all of 127.0.0.0/8
	outside.Store(&own)
	s := &Server{Health: func(context.Context) error { return nil }, Version: "v1.2.3", Revision: "abc", Addresses: func() []netip.Addr { return *outside.Load() }}
	r := server(t, s)
	number, l := freePort(t)
	l.Close()
	r.port.Store(int64(number))
	r.log.await(t, "health served")
	if code, body, err := get(t, "127.0.0.2", number, "/metrics"); code != http.StatusOK || !strings.Contains(body, `vipgen_build_info{revision="abc",version="v1.2.3"} 1`) || !strings.Contains(body, "vipgen_clock_timestamp_seconds ") {
		t.Errorf("%d %v\n%s", code, err, body)
	}
	for _, path := range []string{"/healthz", "/", "/debug/pprof/"} {
		if code, _, err := get(t, "127.0.0.2", number, path); code != http.StatusNotFound {
			t.Errorf("%s: %d %v", path, code, err)
		}
	}
	if _, _, err := get(t, "127.0.0.3", number, "/metrics"); err == nil {
		t.Error("another address answers too")
	}
	other := []netip.Addr{netip.MustParseAddr("192.0.2.10")} // not on this machine
	outside.Store(&other)
	r.log.await(t, "cannot assign requested address")
	if _, _, err := get(t, "127.0.0.2", number, "/metrics"); err == nil {
		t.Error("the address of before still answers")
	}
	if code, _, err := get(t, "127.0.0.1", number, "/healthz"); code != http.StatusOK {
		t.Errorf("loopback: %d %v", code, err)
	}
	outside.Store(new([]netip.Addr))
	r.log.await(t, "health served")
}

// Idle connections, and connections with endless requests, are closed.
func TestIdleConnectionsAreClosed(t *testing.T) {
	r := server(t, &Server{Health: func(context.Context) error { return nil }})
	number, l := freePort(t)
	l.Close()
	r.port.Store(int64(number))
	r.log.await(t, "health served")
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	testkit.Must(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patient))
	if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c) // until the connection is closed
	if err != nil || !bytes.Contains(answer, []byte("Connection: close")) {
		t.Errorf("%v: %s", err, answer)
	}
	silent, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", number))
	testkit.Must(t, err)
	defer silent.Close()
	silent.SetDeadline(time.Now().Add(patient))
	if _, err := io.ReadAll(silent); err != nil {
		t.Errorf("an idle connection is kept: %v", err)
	}
}
