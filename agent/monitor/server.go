package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/ticker"
)

// Server serves /metrics and /healthz.
type Server struct {
	// Port returns the current port; 0 while it is not known. It must not block.
	Port func() int
	// Metrics are the job's own, in addition to those of the Go runtime and the process.
	Metrics []prometheus.Collector
	// Health returns a problem of the job, nil if it is healthy. It returns soon after
	// ctx ends.
	Health func(ctx context.Context) error
	// Version and Revision are those of the agent.
	Version, Revision string
	// Addresses returns addresses of the node at which /metrics, and nothing else, is
	// served besides loopback; nil means none. It is called at every tenth poll.
	Addresses func() []netip.Addr
	Log       *slog.Logger
	// Poll is the interval at which the port is polled and failed listeners are retried;
	// 0 means a second.
	Poll time.Duration

	condition *condition
}

// addresses are the loopback addresses, which only this node reaches.
var addresses = []string{"127.0.0.1", "::1"}

// pollsEach is the number of polls of the port for one of the node's addresses, which
// costs more.
const pollsEach = 10

// Limits on the load that clients can cause.
const (
	maxConnections = 16
	maxHeader      = 8 << 10 // bytes
	maxScrapes     = 2       // at once
	headerTime     = 5 * time.Second
	responseTime   = 10 * time.Second
)

// Run serves until ctx ends. Errors are logged once and retried: a job does not depend on
// its monitoring.
func (s *Server) Run(ctx context.Context) {
	all, metrics, err := s.handlers()
	if err != nil {
		s.Log.Error("cannot serve metrics and health", "error", err)
		return
	}
	l := listeners{all: all, metrics: metrics, log: s.Log}
	defer l.close()
	tick := ticker.New(cmp.Or(s.Poll, time.Second))
	defer tick.Stop()
	var outside []netip.Addr
	for n := 0; ; n++ {
		if s.Addresses != nil && n%pollsEach == 0 {
			outside = s.Addresses()
		}
		l.follow(s.Port(), outside)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.Next()
		}
	}
}

// handlers returns the handler for requests from this node, and the one for metrics only.
func (s *Server) handlers() (all, metrics http.Handler, err error) {
	s.condition = &condition{ask: s.Health, version: s.Version, revision: s.Revision}
	registry := prometheus.NewRegistry()
	for _, c := range append([]prometheus.Collector{
		s.condition, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	}, s.Metrics...) {
		if err := registry.Register(c); err != nil {
			return nil, nil, err
		}
	}
	answer := promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: maxScrapes, DisableCompression: true, ErrorHandling: promhttp.ContinueOnError,
	})
	here, outside := http.NewServeMux(), http.NewServeMux()
	here.Handle("GET /metrics", answer)
	here.HandleFunc("GET /healthz", s.healthz)
	outside.Handle("GET /metrics", answer)
	return here, outside, nil
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := s.condition.get(); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(w, err)
		return
	}
	fmt.Fprintln(w, "ok")
}

// listeners are the current listeners of a Server.
type listeners struct {
	all, metrics http.Handler
	log          *slog.Logger

	port    int
	sockets map[string]*socket // by address
	logged  string
}

// unlogged is the initial value of logged.
const unlogged = "nothing"

// follow moves the listeners to a port, at loopback and at addresses of the node, and
// retries failed ones.
func (l *listeners) follow(port int, outside []netip.Addr) {
	if port != l.port {
		l.close()
		l.port, l.sockets, l.logged = port, map[string]*socket{}, unlogged
	}
	if port == 0 {
		return
	}
	want := map[string]http.Handler{}
	for _, a := range outside {
		want[a.String()] = l.metrics
	}
	for _, address := range addresses {
		want[address] = l.all
	}
	for address, s := range l.sockets {
		if want[address] == nil {
			s.server.Close()
			<-s.done
			delete(l.sockets, address)
		}
	}
	var errs []error
	for _, address := range slices.Sorted(maps.Keys(want)) {
		if s := l.sockets[address]; s == nil || s.ended() {
			errs = append(errs, l.listen(address, want[address]))
		}
	}
	l.logResult(errors.Join(errs...))
}

func (l *listeners) listen(address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(l.port)))
	switch {
	case err == nil:
		l.sockets[address] = serve(listener, handler, l.log)
		return nil
	case address == "::1" && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)):
		return nil // IPv6 is disabled (hard case 25), possibly only for now
	default:
		return err
	}
}

func (l *listeners) logResult(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == l.logged:
	case text != "":
		l.log.Warn("cannot serve metrics and health; trying again every second", "port", l.port, "error", text)
	default:
		l.log.Info("metrics and health served", "port", l.port)
	}
	l.logged = text
}

func (l *listeners) close() {
	for _, s := range l.sockets {
		s.server.Close()
		<-s.done
	}
}

// socket is a listener with its server.
type socket struct {
	server *http.Server
	done   chan struct{}
}

func serve(on net.Listener, handler http.Handler, log *slog.Logger) *socket {
	s := &socket{done: make(chan struct{}), server: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: responseTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	s.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.done)
		_ = s.server.Serve(netutil.LimitListener(on, maxConnections))
	}()
	return s
}

// ended reports whether the server has ended; the next poll restarts it.
func (s *socket) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
