package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// Poll intervals.
const (
	reloadEvery  = 10 * time.Second // of files that may have rotated
	probeEvery   = 5 * time.Second  // of servers preferred to the one in use
	refusedEvery = 10 * time.Second // of resources refused by RBAC
)

// reconnectEvery is the least interval between new connections that Confirm asks for: any host of the link
// can have it called.
const reconnectEvery = 5 * time.Second

// client sends requests to the first API server that answers.
type client struct {
	self, role             string
	kubeconfig, serverName string
	log                    *slog.Logger
	reload, probe, refused time.Duration

	mu          sync.Mutex
	spec        *v1alpha1.ClusterConfigSpec
	nodes       []v1alpha1.Peer
	conn        *connection // nil before the first kubeconfig was read
	failed      failures
	watches     map[*openWatch]struct{}
	inUse       string // the server that answered last; empty if none answers
	contact     time.Time
	unreachable bool // no server answers, already logged
	doubts      map[*doubt]struct{}
	claimed     time.Time // when another host last claimed a VIP that this node has

	loading logging.Transitions // loading the kubeconfig

	doubted chan struct{} // Confirm was called
}

// openWatch is a running watch.
type openWatch struct {
	watch.Interface
	client *client
	server string
}

// Stop ends the watch.
func (w *openWatch) Stop() {
	w.client.mu.Lock()
	if _, open := w.client.watches[w]; open {
		w.client.contact = time.Now()
	}
	delete(w.client.watches, w)
	w.client.mu.Unlock()
	w.Interface.Stop()
}

// run reloads the credentials and returns to preferred servers until ctx ends. Then it
// closes all connections.
func (c *client) run(ctx context.Context) {
	reload, probe := time.NewTicker(c.reload), time.NewTicker(c.probe)
	defer reload.Stop()
	defer probe.Stop()
	defer func() {
		c.stopWatches(func(string) bool { return true })
		if conn := c.current(); conn != nil {
			conn.close()
		}
	}()
	var other sync.WaitGroup
	defer other.Wait()
	other.Go(func() { c.reconnect(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-reload.C:
			c.connection()
		case <-probe.C:
			c.prefer(ctx)
		}
	}
}

// reconnect begins the watches anew on a new connection each time the list is doubted, until ctx ends:
// after a loss of the network, the servers repeat what they sent on the old one with growing delays.
func (c *client) reconnect(ctx context.Context) {
	for last := (time.Time{}); ; {
		select {
		case <-ctx.Done():
			return
		case <-c.doubted:
		}
		if time.Since(last) >= reconnectEvery {
			last = time.Now()
			c.connect(true)
		}
	}
}

func (c *client) current() *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// connection returns a connection with the credentials on disk, or the last valid ones.
// Credentials are compared by content, so that it does not matter which file changed, or
// how.
func (c *client) connection() (*connection, error) { return c.connect(false) }

// connect is connection; anew replaces the connection in any case.
func (c *client) connect(anew bool) (*connection, error) {
	creds, err := loadCredentials(c.kubeconfig, c.serverName)
	c.mu.Lock()
	old := c.conn
	var fresh *connection
	rotated := err == nil && old != nil && !creds.equal(old.credentials)
	if err == nil && (old == nil || rotated || anew) {
		fresh, err = newConnection(creds)
	}
	c.loading.Warn(c.log, err, "cannot use the kubeconfig", "kubeconfig usable again", "have", c.conn != nil)
	if fresh != nil {
		c.conn, c.failed = fresh, failures{}
	}
	conn := c.conn
	c.mu.Unlock()

	if fresh != nil && old != nil {
		if rotated {
			c.log.Info("credentials rotated", "kubeconfig", c.kubeconfig)
		}
		c.stopWatches(func(string) bool { return true })
		old.close()
	}
	if conn == nil {
		return nil, err
	}
	return conn, nil
}

func (c *client) setSpec(spec *v1alpha1.ClusterConfigSpec) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spec = spec
}

func (c *client) setNodes(nodes []v1alpha1.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = nodes
}

// order returns the servers by preference. Peers in the cluster's configuration count
// until they are in the list of nodes, which never contains the bootstrap.
func (c *client) order(conn *connection) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := slices.Clone(c.nodes)
	for _, p := range c.spec.Peers {
		if !slices.ContainsFunc(nodes, func(n v1alpha1.Peer) bool { return !p.Unnamed && n.Name == p.Name }) {
			nodes = append(nodes, p)
		}
	}
	return servers(c.spec, c.self, c.role, conn.server, nodes)
}

// try calls do with the servers in order until it succeeds. Errors of the request, not of
// the server, are returned at once.
func (c *client) try(ctx context.Context, do func(*rest.RESTClient, string) error) error {
	conn, err := c.connection()
	if err != nil {
		return err
	}
	errs := []error{errors.New("no API server to read from")}
	for _, server := range c.order(conn) {
		if c.backingOff(server) {
			continue
		}
		r, err := conn.client(server)
		if err == nil {
			err = do(r, server)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			c.succeeded(server)
			return nil
		case isRequestError(err):
			return err
		case conn != c.current(): // closed during the request
			return c.try(ctx, do)
		}
		c.fail(server, err)
		if apierrors.IsUnauthorized(err) {
			c.unauthorized()
		}
		errs = append(errs, fmt.Errorf("%s: %w", server, err))
	}
	c.logUnreachable()
	return errors.Join(errs...)
}

// isRequestError reports whether another server would answer the same, or the reflector
// handles the error.
func isRequestError(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

func (c *client) backingOff(server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed.backingOff(server, time.Now())
}

func (c *client) succeeded(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.failed, server)
	c.contact, c.unreachable = time.Now(), false
	if c.inUse != server {
		c.log.Info("reading from API server", "server", server, "before", c.inUse)
		c.inUse = server
	}
}

// contacted reports whether an API server is reachable, and the time of the last contact.
// A running watch is permanent contact.
func (c *client) contacted() (reachable bool, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.watches) > 0 {
		return true, time.Now()
	}
	return c.inUse != "", c.contact
}

func (c *client) fail(server string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed.add(server, time.Now()) {
		c.log.Warn("API server does not answer", "server", server, "error", err.Error())
	}
}

func (c *client) logUnreachable() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.unreachable {
		c.log.Warn("no API server answers: the last known state stays in use", "before", c.inUse)
	}
	c.inUse, c.unreachable = "", true
}

// trackWatch registers a watch, which a change of credentials or server ends.
func (c *client) trackWatch(w watch.Interface, server string) watch.Interface {
	o := &openWatch{Interface: w, client: c, server: server}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[o] = struct{}{}
	return o
}

// stopWatches ends the watches on some servers. Their reflectors restart where they
// ended.
func (c *client) stopWatches(on func(server string) bool) {
	c.mu.Lock()
	var end []*openWatch
	for w := range c.watches {
		if on(w.server) {
			end = append(end, w)
		}
	}
	c.mu.Unlock()
	for _, w := range end {
		w.Stop()
	}
}

// prefer ends the watches on worse servers once a preferred one is ready.
func (c *client) prefer(ctx context.Context) {
	conn := c.current()
	if conn == nil {
		return
	}
	order := c.order(conn)
	c.mu.Lock()
	worst := -1
	for w := range c.watches {
		i := slices.Index(order, w.server)
		if i < 0 { // no longer a server at all
			i = len(order)
		}
		worst = max(worst, i)
	}
	c.mu.Unlock()
	for i := range min(max(worst, 0), len(order)) {
		server := order[i]
		if c.backingOff(server) {
			continue
		}
		if err := c.ready(ctx, conn, server); err != nil {
			if ctx.Err() == nil {
				c.fail(server, err)
			}
			continue
		}
		c.mu.Lock()
		c.failed.retry(server)
		c.mu.Unlock()
		c.stopWatches(func(s string) bool {
			at := slices.Index(order, s)
			return at < 0 || at > i
		})
		return
	}
}

func (c *client) ready(ctx context.Context, conn *connection, server string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	return conn.ready(req)
}
