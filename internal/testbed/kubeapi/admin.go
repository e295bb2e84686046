package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// requestTimeout is the time limit of one request to one server.
const requestTimeout = 30 * time.Second

// administrator is the common part of both kinds of Plane: it signs certificates, sends
// requests as cluster administrator, and ends the servers.
type administrator struct {
	ca     *authority.Authority
	config *tls.Config

	mu      sync.Mutex
	targets []*target
	servers []Server
}

// target is an API server as seen by the administrator.
type target struct {
	client *http.Client
	usable func() bool // it runs and can answer

	mu   sync.Mutex
	addr netip.AddrPort
}

func newAdministrator(domain string) (*administrator, error) {
	ca, err := authority.New("lab-signer")
	if err != nil {
		return nil, err
	}
	pair, err := ca.Client("admin", administrators)
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	if err != nil {
		return nil, err
	}
	return &administrator{ca: ca, config: &tls.Config{
		RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}, ServerName: internalName(domain),
	}}, nil
}

// CA implements Plane.
func (a *administrator) CA() *authority.Authority { return a.ca }

// Close implements Plane.
func (a *administrator) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var errs []error
	for _, s := range a.servers {
		errs = append(errs, s.Kill())
	}
	return errors.Join(errs...)
}

// add registers a server.
func (a *administrator) add(s Server, t *target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.servers, a.targets = append(a.servers, s), append(a.targets, t)
}

// target returns the path to a server: from its own node.
func (a *administrator) target(node *netns.Node, addr netip.AddrPort, usable func() bool) *target {
	dial := new(net.Dialer).DialContext
	if node != nil {
		dial = node.DialContext
	}
	return &target{usable: usable, addr: addr, client: &http.Client{
		Transport: &http.Transport{DialContext: dial, TLSClientConfig: a.config},
		Timeout:   requestTimeout,
	}}
}

func (t *target) setAddr(addr netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addr = netip.AddrPortFrom(addr, t.addr.Port())
}

// Create implements Plane.
func (a *administrator) Create(ctx context.Context, collection string, object []byte) error {
	return a.change(ctx, http.MethodPost, collection, object)
}

// Patch implements Plane.
func (a *administrator) Patch(ctx context.Context, path string, patch []byte) error {
	return a.change(ctx, http.MethodPatch, path, patch)
}

// Delete implements Plane.
func (a *administrator) Delete(ctx context.Context, path string) error {
	return a.change(ctx, http.MethodDelete, path+"?gracePeriodSeconds=0", nil)
}

// change sends a request to the first server that answers. One that does not is tried last from
// then on.
func (a *administrator) change(ctx context.Context, method, path string, body []byte) error {
	if !json.Valid(body) { // YAML has shorter keys than JSON may have
		var err error
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	a.mu.Lock()
	targets := slices.Clone(a.targets)
	a.mu.Unlock()
	var errs []error
	for _, t := range targets {
		if !t.usable() {
			continue
		}
		status, answer, err := t.request(ctx, method, path, body)
		switch {
		case err != nil:
			a.last(t)
			errs = append(errs, fmt.Errorf("%w: %w", ErrNoServer, err))
		case status >= 500: // it is not ready, or not any more, or etcd refuses writes
			errs = append(errs, fmt.Errorf("%w: %d %s", ErrNoServer, status, bytes.TrimSpace(answer)))
		case status == http.StatusConflict && method == http.MethodPost:
			return fmt.Errorf("%w: %s", ErrExists, path)
		case status == http.StatusNotFound && method != http.MethodPost:
			return fmt.Errorf("%w: %s", ErrAbsent, path)
		case status >= 300:
			return fmt.Errorf("%s %s: %d %s", method, path, status, bytes.TrimSpace(answer))
		default:
			return nil
		}
	}
	if errs == nil {
		errs = []error{ErrNoServer}
	}
	return fmt.Errorf("%s %s: %w", method, path, errors.Join(errs...))
}

// last moves a server to the end of the order.
func (a *administrator) last(t *target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.targets, t); i >= 0 {
		a.targets = append(slices.Delete(a.targets, i, i+1), t)
	}
}

// request sends a request to this server.
func (t *target) request(ctx context.Context, method, path string, body []byte) (status int, answer []byte, err error) {
	t.mu.Lock()
	url := "https://" + t.addr.String() + path
	t.mu.Unlock()
	if method == http.MethodGet || method == http.MethodDelete {
		body = nil
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", mergePatch)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// readyEvery is the interval of readiness checks.
const readyEvery = 20 * time.Millisecond

// awaitReady polls /readyz until it answers ok; ended reports that it never will.
func (t *target) awaitReady(ctx context.Context, ended func() error) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		status, answer, err := t.request(ctx, http.MethodGet, "/readyz", nil)
		if err == nil && status == http.StatusOK {
			return nil
		}
		if err := ended(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err == nil {
				err = fmt.Errorf("/readyz says %d %s", status, answer)
			}
			return fmt.Errorf("waiting for the API server to be ready: %w: %w", ctx.Err(), err)
		}
	}
}

// close closes idle connections to the server.
func (t *target) close() { t.client.CloseIdleConnections() }
