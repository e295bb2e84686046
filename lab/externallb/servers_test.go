package externallb

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// standIn answers requests with the name of its node.
type standIn struct {
	listener *process.Listener
	server   *http.Server
	// draining is set if it reports not ready but still answers.
	draining atomic.Bool
}

// serve answers at a port of a node: 200 at its health path, and the node's name at every other
// one.
func (o *outside) serve(node *netns.Node, port int, secure bool, health string) *standIn {
	o.t.Helper()
	l, err := process.ListenAll(node, port)
	testkit.Must(o.t, err)
	s := &standIn{listener: l}
	s.server = &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: new(http.Protocols),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == health && s.draining.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, node.Name)
		})}
	s.server.Protocols.SetHTTP1(true)
	if secure {
		ca, err := authority.New(node.Name + "-signer")
		testkit.Must(o.t, err)
		pair, err := ca.Serving(node.Name)
		testkit.Must(o.t, err)
		cert, err := pair.TLS()
		testkit.Must(o.t, err)
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		go s.server.ServeTLS(l, "", "")
	} else {
		go s.server.Serve(l)
	}
	o.t.Cleanup(s.kill)
	return s
}

func (s *standIn) kill() {
	s.listener.Kill()
	s.server.Close()
}

// get sends one request over a new connection and returns the server that answered.
func get(from *netns.Node, scheme, address string, port int, path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(address, fmt.Sprint(port)), path), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	if err == nil && resp.TLS != nil && resp.TLS.PeerCertificates[0].Subject.CommonName != string(body) {
		err = fmt.Errorf("a certificate of %s, from %s: TLS was not passed through", resp.TLS.PeerCertificates[0].Subject.CommonName, body)
	}
	return string(body), err
}
