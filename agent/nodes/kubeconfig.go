package nodes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/connrotation"

	"github.com/vipgen/vipgen/internal/loopback"
)

// credentials holds the contents of a kubeconfig and of the files that it refers to.
type credentials struct {
	server string // base URL
	token  string
	tls    rest.TLSClientConfig
}

// loadCredentials reads a kubeconfig. Server certificates are verified for its
// tls-server-name, else for the host of its server, on every server; serverName replaces
// that name if not empty.
//
// On OpenShift the name is api-int.<domain>: every API server has a certificate for it,
// chosen by SNI and signed by a CA of the kubeconfig. The certificate without SNI, or for
// an address, is that of the service network.
func loadCredentials(path, serverName string) (*credentials, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	c, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.ExecProvider != nil || c.AuthProvider != nil {
		return nil, fmt.Errorf("%s: credentials that a program provides are not supported", path)
	}
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var token []byte
	if c.BearerTokenFile != "" {
		if token, err = os.ReadFile(c.BearerTokenFile); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		token = bytes.TrimSpace(token)
		c.BearerToken = string(token)
	}
	// A file that is being written, or was when the disk was full, does not mean to use
	// no credentials.
	for _, f := range []struct {
		name string
		data []byte
	}{{c.CAFile, c.CAData}, {c.CertFile, c.CertData}, {c.KeyFile, c.KeyData}, {c.BearerTokenFile, token}} {
		if f.name != "" && len(f.data) == 0 {
			return nil, fmt.Errorf("%s: %s is empty", path, f.name)
		}
	}
	u, err := url.Parse(c.Host)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%s: server %q is not an https URL", path, c.Host)
	}
	serverName = cmp.Or(serverName, c.TLSClientConfig.ServerName)
	if serverName == "" {
		serverName = u.Hostname()
	}
	return &credentials{
		server: "https://" + u.Host,
		token:  c.BearerToken,
		tls: rest.TLSClientConfig{
			Insecure:   c.Insecure,
			ServerName: serverName,
			CAData:     c.CAData,
			CertData:   c.CertData,
			KeyData:    c.KeyData,
		},
	}, nil
}

func (c *credentials) equal(o *credentials) bool {
	return c.server == o.server && c.token == o.token && c.tls.Insecure == o.tls.Insecure &&
		c.tls.ServerName == o.tls.ServerName && bytes.Equal(c.tls.CAData, o.tls.CAData) &&
		bytes.Equal(c.tls.CertData, o.tls.CertData) && bytes.Equal(c.tls.KeyData, o.tls.KeyData)
}

// Limits of a connection. A watch on a hung or removed server ends after pingAfter and
// pingTimeout, and the next server is read after one dialTimeout: sooner than a moved
// node takes part again (joinTime in agent/keepalived/membership), which this node must
// know by then.
const (
	dialTimeout   = 1500 * time.Millisecond // allows for one lost SYN; also for the TLS handshake
	headerTimeout = 10 * time.Second
	pingAfter     = 2 * time.Second // without a frame received
	pingTimeout   = 2 * time.Second
	readyTimeout  = 3 * time.Second
	idleTimeout   = 30 * time.Second
)

// connection reaches API servers with one set of credentials.
type connection struct {
	*credentials
	http   *http.Client
	dialer *connrotation.Dialer

	mu      sync.Mutex
	clients map[string]*rest.RESTClient
}

func newConnection(c *credentials) (*connection, error) {
	t, err := rest.TLSConfigFor(&rest.Config{TLSClientConfig: c.tls})
	if err != nil {
		return nil, err
	}
	dialer := connrotation.NewDialer((&loopback.Dialer{Dialer: net.Dialer{Timeout: dialTimeout, KeepAlive: idleTimeout}}).DialContext)
	var rt http.RoundTripper = &http.Transport{
		// No proxy: API servers are on the machine network.
		DialContext:           dialer.DialContext,
		TLSClientConfig:       t,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
		IdleConnTimeout:       idleTimeout,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if c.token != "" {
		rt = transport.NewBearerAuthRoundTripper(c.token, rt)
	}
	return &connection{
		credentials: c,
		http:        &http.Client{Transport: rt},
		dialer:      dialer,
		clients:     map[string]*rest.RESTClient{},
	}, nil
}

func (c *connection) client(server string) (*rest.RESTClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.clients[server]; r != nil {
		return r, nil
	}
	r, err := rest.RESTClientForConfigAndClient(&rest.Config{
		Host:           server,
		APIPath:        "/api",
		ContentConfig:  rest.ContentConfig{GroupVersion: &coreV1, NegotiatedSerializer: codecs},
		UserAgent:      "vipgen-agent",
		QPS:            -1, // reflectors and failures limit the rate
		WarningHandler: rest.NoWarnings{},
	}, c.http)
	if err == nil {
		c.clients[server] = r
	}
	return r, err
}

func (c *connection) ready(req *http.Request) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("/readyz says " + resp.Status)
	}
	return nil
}

// close ends all connections and the requests on them.
func (c *connection) close() {
	c.http.CloseIdleConnections()
	c.dialer.CloseAll()
}
