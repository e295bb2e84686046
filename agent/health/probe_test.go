package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// service counts the connections that it accepts.
type service struct {
	*httptest.Server
	accepted atomic.Int32
	status   atomic.Int32
	hangs    chan struct{} // requests wait until it is closed, if not nil
}

func newService(t testing.TB, secure bool) *service {
	t.Helper()
	return start(t, &service{}, secure)
}

// start starts a service, whose fields its requests read from then on.
func start(t testing.TB, s *service, secure bool) *service {
	t.Helper()
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hangs != nil {
			select {
			case <-s.hangs:
			case <-r.Context().Done():
			}
		}
		w.WriteHeader(int(s.status.Load()))
		fmt.Fprintln(w, "[+]ping ok")
	}))
	s.Listener.Close()
	var err error
	if s.Listener, err = net.Listen("tcp", daemon.FreePort(t).String()); err != nil {
		t.Fatal(err)
	}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.accepted.Add(1)
		}
	}
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// local is the service's URL with the host name that checks use.
func (s *service) local() string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }

func newProbe(t testing.TB, url string) *HTTP {
	h := NewHTTP(url)
	t.Cleanup(h.Close)
	return h
}

func TestConnectionStaysOpen(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https, any certificate": true} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, secure)
			h := newProbe(t, s.local()+"/readyz")
			for i := range 100 {
				want := http.StatusOK
				if i%10 == 9 {
					want = http.StatusInternalServerError
				}
				s.status.Store(int32(want))
				if err := h.Probe(context.Background()); (err == nil) != (want == http.StatusOK) {
					t.Fatalf("status %d: %v", want, err)
				}
			}
			testkit.Equal(t, 1, s.accepted.Load())
		})
	}
}

// A service that hangs delays one probe only; the next one uses a new connection.
func TestHungService(t *testing.T) {
	s := start(t, &service{hangs: make(chan struct{})}, true)
	h := newProbe(t, s.local())
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	testkit.Is(testkit.In(t, "while it hangs"), h.Probe(ctx), context.DeadlineExceeded)
	close(s.hangs)
	ctx, cancel = context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	testkit.Check(t, h.Probe(ctx))
}

func TestNotReady(t *testing.T) {
	s := newService(t, false)
	gone := newService(t, false)
	gone.Close()
	for name, tt := range map[string]struct {
		url    string
		status int
		want   string
	}{
		"shuts down":    {s.local(), 500, "status 500"},
		"unavailable":   {s.local(), 503, "status 503"},
		"elsewhere":     {s.local(), 302, "status 302"},
		"forbidden":     {s.local(), 403, "status 403"},
		"not listening": {gone.local(), 0, "connection refused"},
		"no service":    {"https://" + s.Listener.Addr().String(), 200, "does not look like a TLS handshake"},
	} {
		s.status.Store(int32(tt.status))
		testkit.Fails(testkit.In(t, name), newProbe(t, tt.url).Probe(context.Background()), tt.want)
	}
}

func TestConnect(t *testing.T) {
	s := newService(t, false)
	probe := connect(s.Listener.Addr().(*net.TCPAddr).Port)
	testkit.Check(t, probe(context.Background()))
	s.Close()
	testkit.Fails(testkit.In(t, "no listener"), probe(context.Background()), "")
}

// A check finds a service that listens on one family alone; lab/agents runs the jobs without IPv6.
func TestHardCase25EitherFamily(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "::1", ""} {
		port := daemon.FreePort(t).Port()
		l, err := net.Listen("tcp", net.JoinHostPort(address, fmt.Sprint(port)))
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			continue // this machine has no IPv6
		}
		testkit.Must(t, err)
		defer l.Close()
		go http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		h := newProbe(t, fmt.Sprintf("http://localhost:%d/", port))
		for range 3 {
			testkit.Check(testkit.In(t, address), h.Probe(t.Context()))
			h.Close()
		}
	}
}
