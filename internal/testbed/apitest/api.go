package apitest

import (
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
	"github.com/vipgen/vipgen/internal/testkit"
)

// Paths of collections of the API.
const (
	NodesPath      = "/api/v1/nodes"
	namespacesPath = "/api/v1/namespaces"
	etcdNamespace  = "openshift-etcd"
)

// domain is the cluster's.
const domain = "demo.example.com"

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Object is an object of the API.
type Object map[string]any

// API is the API of cluster demo.example.com, or the stand-in for it, changed by an administrator. A
// change needs a running server. Servers that stop continue to serve for as long as a test
// takes.
type API struct {
	plane kubeapi.Plane
	t     testing.TB
}

// NewAPI makes an API without servers and objects.
func NewAPI(t testing.TB) *API {
	t.Helper()
	plane, err := kubeapi.NewStandIn(kubeapi.StandInConfig{Domain: domain, ShutdownDelay: time.Hour})
	return newAPI(t, plane, err)
}

// NewRealAPI is NewAPI with an etcd on a host, where Serve starts kube-apiserver.
func NewRealAPI(t testing.TB, h *daemon.Host) *API {
	t.Helper()
	plane, err := kubeapi.NewReal(kubeapi.RealConfig{
		Dir: t.TempDir(), Etcd: testkit.Tool(t, "etcd"), APIServer: testkit.Tool(t, "kube-apiserver"), Node: h.Node, Addr: loopback, Domain: domain,
	})
	return newAPI(t, plane, err)
}

func newAPI(t testing.TB, plane kubeapi.Plane, err error) *API {
	t.Helper()
	testkit.Must(t, err)
	testkit.Cleanup(t, plane.Close)
	return &API{plane, t}
}

// Serve starts an API server on a host, and gives the node of that name credentials.
func (a *API) Serve(h *daemon.Host, name string) kubeapi.Server {
	a.t.Helper()
	server, err := a.plane.Server(h.Node, loopback) // a port that no test uses
	testkit.Must(a.t, err)
	testkit.Must(a.t, server.Launch())
	for _, dir := range []string{"/var/lib/kubelet", "/etc/kubernetes"} { // of nodes, and of the bootstrap host
		_, err := kubeapi.WriteKubeconfig(h.Path("/"), dir, a.plane.CA(), name, "api-int."+domain+":6443")
		testkit.Must(a.t, err)
	}
	return server
}

// Create creates an object in a collection, and reports whether it is new.
func (a *API) Create(collection string, o Object) bool {
	a.t.Helper()
	data, err := json.Marshal(o)
	testkit.Must(a.t, err)
	err = a.plane.Create(a.t.Context(), collection, data)
	if errors.Is(err, kubeapi.ErrExists) {
		return false
	}
	testkit.Must(a.t, err)
	return true
}

// Patch changes an object by a JSON merge patch (RFC 7396).
func (a *API) Patch(path string, o Object) {
	a.t.Helper()
	data, err := json.Marshal(o)
	testkit.Must(a.t, err)
	testkit.Must(a.t, a.plane.Patch(a.t.Context(), path, data))
}

// SetNode registers a node or changes it.
func (a *API) SetNode(name, role string, addresses ...string) {
	a.t.Helper()
	list := []Object{}
	for _, x := range addresses {
		list = append(list, Object{"type": "InternalIP", "address": x})
	}
	labels, status := Object{v1alpha1.RoleLabel(role): ""}, Object{"addresses": list}
	if a.Create(NodesPath, Object{"apiVersion": "v1", "kind": "Node", "metadata": Object{"name": name, "labels": labels}, "status": status}) {
		return
	}
	for _, other := range []string{v1alpha1.RoleMaster, v1alpha1.RoleWorker} {
		if other != role {
			labels[v1alpha1.RoleLabel(other)] = nil
		}
	}
	a.Patch(NodesPath+"/"+name, Object{"metadata": Object{"labels": labels}})
	a.Patch(NodesPath+"/"+name+"/status", Object{"status": status})
}

// RemoveNode deletes a Node.
func (a *API) RemoveNode(name string) {
	a.t.Helper()
	testkit.Must(a.t, a.plane.Delete(a.t.Context(), NodesPath+"/"+name))
}

// SetBootstrap sets the address of the bootstrap host; an empty one means that it is gone.
func (a *API) SetBootstrap(address string) {
	a.t.Helper()
	metadata := Object{"name": "etcd-endpoints", "annotations": Object{"alpha.installer.openshift.io/etcd-bootstrap": address}}
	path := a.namespace(etcdNamespace) + "/configmaps"
	if !a.Create(path, Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}) {
		a.Patch(path+"/etcd-endpoints", Object{"metadata": metadata})
	}
}

func (a *API) namespace(name string) string {
	a.t.Helper()
	a.Create(namespacesPath, Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": name}})
	return namespacesPath + "/" + name
}
