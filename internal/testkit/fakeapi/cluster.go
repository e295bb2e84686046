package fakeapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Cluster is what all API servers of a cluster serve.
type Cluster struct {
	Nodes *Collection
	// Endpoints has the ConfigMap that says where the bootstrap host is.
	Endpoints *Collection

	mu       sync.Mutex
	routers  map[string]*Collection // by node
	refused  bool
	outdated []string       // hosts whose credentials have expired
	users    map[string]int // requests by the client certificate's serial number
}

// New makes a cluster without nodes.
func New() *Cluster {
	return &Cluster{Nodes: newCollection("Node"), Endpoints: newCollection("ConfigMap"), routers: map[string]*Collection{}, users: map[string]int{}}
}

// SetNode registers a node or changes it.
func (c *Cluster) SetNode(name, role, address string) {
	c.Nodes.Set(fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"node-role.kubernetes.io/%s":""}},
		"status":{"addresses":[{"type":"InternalIP","address":%q}]}}`, name, role, address))
}

// SetBootstrap says where the bootstrap host is, or with an empty address that it is
// gone.
func (c *Cluster) SetBootstrap(address string) {
	c.Endpoints.Set(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"etcd-endpoints",
		"annotations":{"alpha.installer.openshift.io/etcd-bootstrap":%q}}}`, address))
}

// SetRouter says whether a ready router of an ingress controller runs on a node.
func (c *Cluster) SetRouter(controller, node string, here bool) {
	pods, name := c.routersOf(node), "router-"+controller+"-"+node
	if !here {
		pods.Remove(name)
		return
	}
	pods.Set(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,
		"labels":{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller":%q}},
		"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, name, controller))
}

func (c *Cluster) routersOf(node string) *Collection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routers[node] == nil {
		c.routers[node] = newCollection("Pod")
	}
	return c.routers[node]
}

// Refuse switches on or off that RBAC refuses everything to everybody: 403.
func (c *Cluster) Refuse(refused bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = refused
}

// Expire makes the credentials of the host with an address worth nothing: 401.
func (c *Cluster) Expire(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outdated = append(c.outdated, address)
}

// Users counts the client certificates that have been seen.
func (c *Cluster) Users() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users)
}

// ServeHTTP answers as an API server that is ready does.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	c.mu.Lock()
	if len(r.TLS.PeerCertificates) > 0 {
		c.users[r.TLS.PeerCertificates[0].SerialNumber.String()]++
	}
	refused, expired := c.refused, slices.Contains(c.outdated, host)
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case expired:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/readyz":
		io.WriteString(w, "ok")
	case refused:
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
			"message":"nodes is forbidden: User \"system:node:master-0\" cannot list resource \"nodes\""}`)
	case r.Method == http.MethodPatch:
		c.patch(w, r)
	default:
		c.serve(w, r)
	}
}

func (c *Cluster) patch(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/api/v1/nodes/")
	patch, err := io.ReadAll(r.Body)
	if ok && err == nil {
		err = c.Nodes.Annotate(name, patch)
	}
	if !ok || err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	io.WriteString(w, "{}")
}

func (c *Cluster) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/nodes":
		c.Nodes.ServeHTTP(w, r)
	case "/api/v1/namespaces/openshift-etcd/configmaps":
		c.Endpoints.ServeHTTP(w, r)
	case "/api/v1/namespaces/openshift-ingress/pods":
		// A node may ask for its own alone.
		c.routersOf(strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=")).ServeHTTP(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
