package monitor

import (
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
	// Port gives the port to listen on now; 0 while it is not known. It must not
	// block.
	Port func() int
	// Metrics are the job's own, beside those of the Go runtime and the process.
	Metrics []prometheus.Collector
	// Health says what is wrong with the job, nil if it works as it should. It
	// returns soon after ctx has ended.
	Health func(ctx context.Context) error
	// Version and Revision are those of the agent.
	Version, Revision string
	// Addresses gives addresses of the node at which /metrics is to be read besides
	// loopback, and nothing else; nil means none. It is asked again every tenth Look.
	Addresses func() []netip.Addr
	Log       *slog.Logger
	// Look is how often the port is looked at and a port that is taken is tried
	// again; 0 is a second.
	Look time.Duration

	condition *condition
}

// addresses are those of loopback: what is served there is for this node alone.
var addresses = []string{"127.0.0.1", "::1"}

// looksEach is how many looks at the port there are for one at the node's addresses, which
// costs more.
const looksEach = 10

// Limits that keep whoever asks from costing the node more than a little.
const (
	maxConnections = 16
	maxHeader      = 8 << 10 // bytes
	maxScrapes     = 2       // at once
	headerTime     = 5 * time.Second
	answerTime     = 10 * time.Second
)

// Run serves until ctx ends. Whatever keeps it from serving is logged once and
// tried again: a job does not depend on being watched.
func (s *Server) Run(ctx context.Context) {
	all, metrics, err := s.handlers()
	if err != nil {
		s.Log.Error("metrics and health are not served", "error", err)
		return
	}
	look := s.Look
	if look == 0 {
		look = time.Second
	}
	l := listening{all: all, metrics: metrics, log: s.Log}
	defer l.close()
	tick := ticker.New(look)
	defer tick.Stop()
	var outside []netip.Addr
	for n := 0; ; n++ {
		if s.Addresses != nil && n%looksEach == 0 {
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

// handlers answer requests: of the node itself all, of others those for metrics.
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

// listening is where a Server listens now.
type listening struct {
	all, metrics http.Handler
	log          *slog.Logger

	port    int
	sockets map[string]*socket // by address
	said    string
}

// unsaid is what was said about a port of which nothing was said yet.
const unsaid = "nothing"

// follow listens on a port instead of the one before, at loopback and at addresses of the
// node instead of those before, and again on what failed.
func (l *listening) follow(port int, outside []netip.Addr) {
	if port != l.port {
		l.close()
		l.port, l.sockets, l.said = port, map[string]*socket{}, unsaid
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
	l.say(errors.Join(errs...))
}

func (l *listening) listen(address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(l.port)))
	switch {
	case err == nil:
		l.sockets[address] = serve(listener, handler, l.log)
		return nil
	case address == "::1" && (errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EAFNOSUPPORT)):
		return nil // IPv6 is switched off (hard case 25); it may come
	default:
		return err
	}
}

func (l *listening) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == l.said:
	case text != "":
		l.log.Warn("metrics and health are not served; trying again every second", "port", l.port, "error", text)
	default:
		l.log.Info("metrics and health are served", "port", l.port)
	}
	l.said = text
}

func (l *listening) close() {
	for _, s := range l.sockets {
		s.server.Close()
		<-s.done
	}
}

// socket is one listener with its server.
type socket struct {
	server *http.Server
	done   chan struct{}
}

func serve(on net.Listener, handler http.Handler, log *slog.Logger) *socket {
	s := &socket{done: make(chan struct{}), server: &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: answerTime,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	s.server.SetKeepAlivesEnabled(false)
	go func() {
		defer close(s.done)
		_ = s.server.Serve(netutil.LimitListener(on, maxConnections))
	}()
	return s
}

// ended says that the server serves no more, which is for the next look to mend.
func (s *socket) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
