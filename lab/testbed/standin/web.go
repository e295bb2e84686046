package standin

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

// Ports of a router for its routes.
const (
	httpPort  = 80
	httpsPort = 443
)

// site is the service on one port.
type site struct {
	port    int
	secure  bool
	handler http.HandlerFunc
}

// NewMachineConfig starts the machine config server of a control-plane node, on a port
// (spec.ports.machineConfig) of all addresses. It is always healthy.
func NewMachineConfig(node *netns.Node, port int) (*Service, error) {
	return newWeb(node, site{port, true, ok("/healthz")})
}

// NewRouter starts a router of an ingress controller on a node, with its health endpoint on a port
// (spec.ports.routerHealth). Its answers have the requested host, the controller and the name of
// the node.
func NewRouter(node *netns.Node, controller string, health int) (*Service, error) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s from router %s at %s\n", r.Host, controller, node.Name)
	}
	return newWeb(node,
		site{health, false, ok("/healthz", "/healthz/ready")},
		site{httpPort, false, answer},
		site{httpsPort, true, answer})
}

// ok returns a handler that answers only at these paths.
func ok(paths ...string) http.HandlerFunc {
	mux := http.NewServeMux()
	for _, path := range paths {
		mux.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) {})
	}
	return mux.ServeHTTP
}

// newWeb starts sites on all addresses of a node. They speak HTTP/1.1; the secure ones have a
// self-signed certificate.
func newWeb(node *netns.Node, sites ...site) (*Service, error) {
	ca, err := authority.New(node.Name + "-signer")
	if err != nil {
		return nil, err
	}
	pair, err := ca.Serving(node.Name)
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	return start(func() (func(), error) {
		var kills []func()
		killAll := func() {
			for _, kill := range kills {
				kill()
			}
		}
		for _, s := range sites {
			kill, err := s.serve(node, cert)
			if err != nil {
				killAll()
				return nil, err
			}
			kills = append(kills, kill)
		}
		return killAll, nil
	})
}

func (s site) serve(node *netns.Node, cert tls.Certificate) (kill func(), err error) {
	l, err := process.ListenAll(node, s.port)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler: s.handler, Protocols: new(http.Protocols), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		// Clients that disconnect early are not errors.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	server.Protocols.SetHTTP1(true)
	go func() {
		if s.secure {
			server.ServeTLS(l, "", "")
		} else {
			server.Serve(l)
		}
	}()
	return func() {
		l.Kill()
		server.Close()
	}, nil
}
