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

// Client-go's dialer, which is replaced here to connect from a machine of the lab
// (k8s.io/client-go/transport, cache.go). Its HTTP/2 is not: it pings a connection on
// which nothing came for 30 seconds, and gives it up 15 seconds later
// (k8s.io/apimachinery/pkg/util/net, http.go).
const (
	dialTimeout = 30 * time.Second
	keepAlive   = 30 * time.Second
)

// access is how a client gets to the API.
type access struct {
	vip        netip.AddrPort
	serverName string // that certificates are verified for
	ca         []byte
	pair       authority.KeyPair
}

// newAccess makes the credentials of all clients.
func newAccess(cfg *Config) (*access, error) {
	pair, err := cfg.API.CA().Client("lab-client", "system:masters")
	if err != nil {
		return nil, fmt.Errorf("credentials of clients: %w", err)
	}
	return &access{cfg.VIP, "api-int." + cfg.Domain, cfg.API.CA().CertPEM, pair}, nil
}

// config is for one client on a machine, which shares no connection with others. The
// dialer knows its connections.
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
		ContentConfig:   rest.ContentConfig{ContentType: runtime.ContentTypeJSON}, // the stand-in takes nothing else
		TLSClientConfig: rest.TLSClientConfig{ServerName: a.serverName, CAData: a.ca, CertData: a.pair.Cert, KeyData: a.pair.Key},
	}, dialer
}

// client asks for the objects of one group, each of whose requests takes no longer than
// timeout, if it is not 0.
func (a *access) client(from Machine, path string, group schema.GroupVersion, timeout time.Duration) (*rest.RESTClient, *connrotation.Dialer, error) {
	config, dialer := a.config(from)
	config.Timeout, config.APIPath, config.GroupVersion, config.NegotiatedSerializer = timeout, path, &group, codecs
	client, err := rest.RESTClientFor(config)
	return client, dialer, err
}

// codecs know the objects that clients ask for.
var codecs = func() runtime.NegotiatedSerializer {
	known := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(known))
	utilruntime.Must(coordinationv1.AddToScheme(known))
	return serializer.NewCodecFactory(known).WithoutConversion()
}()
