package client

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/vipgen/vipgen/internal/testbed/authority"
)

// Settings of client-go's dialer, which is replaced here to connect from a machine of the lab
// (k8s.io/client-go/transport, cache.go). Its HTTP/2 is not replaced: it pings a connection after
// 30 seconds without a frame, and closes it 15 seconds later (k8s.io/apimachinery/pkg/util/net,
// http.go).
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// access holds the clients' access to the API.
type access struct {
	vip        netip.AddrPort
	serverName string // name to verify certificates for
	ca         []byte
	pair       authority.KeyPair
}

// newAccess creates the credentials of all clients.
func newAccess(cfg *Config) (*access, error) {
	pair, err := cfg.API.CA().Client("lab-client", "system:masters")
	if err != nil {
		return nil, fmt.Errorf("credentials of clients: %w", err)
	}
	return &access{cfg.VIP, "api-int." + cfg.Domain, cfg.API.CA().CertPEM, pair}, nil
}

// config returns the configuration of one client on a machine, which shares no connection with
// others, and the dialer of its connections.
func (a *access) config(from Machine) (*rest.Config, *connrotation.Dialer) {
	dialer := connrotation.NewDialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		conn, err := from.DialContext(ctx, network, a.vip.String())
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			err = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive})
		}
		return conn, err
	})
	return &rest.Config{
		Host: "https://" + a.vip.String(), Dial: dialer.DialContext, QPS: -1,
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, // the stand-in accepts nothing else
		TLSClientConfig: rest.TLSClientConfig{ServerName: a.serverName, CAData: a.ca, CertData: a.pair.Cert, KeyData: a.pair.Key},
	}, dialer
}

// client returns a client for the objects of one API group. A timeout of 0 is none.
func (a *access) client(from Machine, path string, group schema.GroupVersion, timeout time.Duration) (*rest.RESTClient, *connrotation.Dialer, error) {
	config, dialer := a.config(from)
	config.Timeout, config.APIPath, config.GroupVersion, config.NegotiatedSerializer = timeout, path, &group, codecs
	client, err := rest.RESTClientFor(config)
	return client, dialer, err
}

// codecs encode and decode the objects that clients use.
var codecs = func() runtime.NegotiatedSerializer {
	known := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(known))
	utilruntime.Must(coordinationv1.AddToScheme(known))
	return serializer.NewCodecFactory(known).WithoutConversion()
}()
