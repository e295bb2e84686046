package kubeapi

import (
	"context"
	"errors"
	"net/netip"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/authority"
	"github.com/vipgen/vipgen/internal/testbed/netns"
)

// Plane is the API of a cluster: servers on several nodes with the same objects
// behind them.
type Plane interface {
	// CA signs all certificates.
	CA() *authority.Authority
	// Server prepares the API server of a node, for Launch: at all of its addresses, of which
	// one is given. Its certificate without SNI has the node's name as the subject, and is
	// valid for the API's names and the given addresses. Without a node the server is on this
	// machine, at the given address alone.
	Server(node *netns.Node, addr netip.Addr, valid ...netip.Addr) (Server, error)
	// Create creates an object, given as YAML or JSON, as cluster administrator, at the path of
	// its collection, such as /api/v1/nodes. Like Patch and Delete it uses the first server
	// that answers.
	Create(ctx context.Context, collection string, object []byte) error
	// Patch changes an object, such as /api/v1/nodes/x, or its status, which is
	// /api/v1/nodes/x/status, by a JSON merge patch (RFC 7396), given as YAML or
	// JSON.
	Patch(ctx context.Context, path string, patch []byte) error
	// Delete removes an object immediately.
	Delete(ctx context.Context, path string) error
	// RefuseWrites has the storage refuse writes from now on, or take them again, as etcd does
	// when its disk quota is used up.
	RefuseWrites(ctx context.Context, refuse bool) error
	// Close ends all servers, and their storage.
	Close() error
}

// Server is an API server.
type Server interface {
	// Launch starts the server and returns at once. It may be called again after Kill and Stop:
	// the server then has the others' objects.
	Launch() error
	// AwaitReady returns when /readyz answers ok, or with an error when the server or ctx has
	// ended.
	AwaitReady(ctx context.Context) error
	// Running reports whether it was launched and has not ended.
	Running() bool
	// Kill ends the server at once, with its connections.
	Kill() error
	// Stop shuts the server down gracefully: /readyz fails first, and everything else is served
	// for a while (hard case 8). When ctx ends before that, the server is killed, and the error
	// reports it.
	Stop(ctx context.Context) error
	// Freeze suspends the server: the kernel continues to accept connections, which nothing
	// answers. Thaw resumes it.
	Freeze() error
	// Thaw undoes Freeze.
	Thaw() error
	// SetAddr sets a changed address of the node.
	SetAddr(addr netip.Addr)
}

// ErrNoServer is returned by Create, Patch and Delete while no API server takes changes.
var ErrNoServer = errors.New("no API server of the cluster takes changes")

// ErrExists is returned by Create for an object that there is, ErrAbsent by Patch and Delete for one that there
// is not.
var (
	ErrExists = errors.New("the object exists")
	ErrAbsent = errors.New("the object does not exist")
)

// port is the default port of API servers.
var port = uint16(v1alpha1.DefaultPorts.API)

// serviceNames are the name and the address by which pods reach the API.
var serviceNames = []string{"kubernetes.default.svc", "10.0.0.1"}

// internalName returns the name of the API inside the cluster.
func internalName(domain string) string { return "api-int." + domain }

// pairs are the certificates of an API server, as on OpenShift: the one served without SNI, and
// those for localhost and for the internal name of the API.
type pairs struct{ service, localhost, internal authority.KeyPair }

func newPairs(ca *authority.Authority, domain string, node *netns.Node, addr netip.Addr, valid []netip.Addr) (p pairs, err error) {
	names := serviceNames
	if node != nil {
		names = append([]string{node.Name, "api." + domain, internalName(domain), addr.String()}, names...)
	}
	for _, a := range valid {
		names = append(names[:len(names):len(names)], a.String())
	}
	if p.service, err = ca.Serving(names...); err != nil {
		return p, err
	}
	if p.localhost, err = ca.Serving("localhost", "127.0.0.1"); err != nil {
		return p, err
	}
	p.internal, err = ca.Serving(internalName(domain))
	return p, err
}

// serverName returns the name of a server in errors.
func serverName(node *netns.Node, addr netip.Addr) string {
	if node == nil {
		return addr.String()
	}
	return node.Name
}
