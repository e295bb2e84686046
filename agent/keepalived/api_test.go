package keepalived

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
)

// Where the API has what nodes read.
const (
	nodesPath      = "/api/v1/nodes"
	configMapsPath = "/api/v1/namespaces/openshift-etcd/configmaps"
	podsPath       = "/api/v1/namespaces/openshift-ingress/pods"
)

// kubeletDir is where a node has its credentials, and bootstrapDir where the bootstrap has
// its own.
const (
	kubeletDir   = "/var/lib/kubelet"
	bootstrapDir = "/etc/kubernetes"
)

// api is the API of a cluster, changed by an administrator. Without a node that serves it
// nothing can be changed.
type api struct {
	kubeapi.Plane
	t *testing.T
}

// object is one of the API.
type object map[string]any

// newAPI makes one of which servers that stop go on for as long as a test takes.
func newAPI(t *testing.T) *api {
	t.Helper()
	plane, err := kubeapi.NewStandIn(kubeapi.StandInConfig{Domain: "demo.example.com", ShutdownDelay: time.Hour})
	a := &api{plane, t}
	a.must(err)
	t.Cleanup(func() { a.must(plane.Close()) })
	return a
}

func (a *api) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// create reports whether an object is new.
func (a *api) create(collection string, o object) bool {
	a.t.Helper()
	data, err := json.Marshal(o)
	a.must(err)
	err = a.Create(a.t.Context(), collection, data)
	if err != nil && strings.Contains(err.Error(), ": 409 ") {
		return false
	}
	a.must(err)
	return true
}

func (a *api) patch(path string, o object) {
	a.t.Helper()
	data, err := json.Marshal(o)
	a.must(err)
	a.must(a.Patch(a.t.Context(), path, data))
}

func (a *api) remove(path string) {
	a.t.Helper()
	a.must(a.Delete(a.t.Context(), path))
}

// setNode registers a node or changes it.
func (a *api) setNode(name, role string, addresses ...string) {
	a.t.Helper()
	list := []object{}
	for _, x := range addresses {
		list = append(list, object{"type": "InternalIP", "address": x})
	}
	labels, status := object{v1alpha1.RoleLabel(role): ""}, object{"addresses": list}
	if a.create(nodesPath, object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "labels": labels}, "status": status}) {
		return
	}
	for _, other := range []string{"master", "worker"} {
		if other != role {
			labels[v1alpha1.RoleLabel(other)] = nil
		}
	}
	a.patch(nodesPath+"/"+name, object{"metadata": object{"labels": labels}})
	a.patch(nodesPath+"/"+name+"/status", object{"status": status})
}

func (a *api) removeNode(name string) {
	a.t.Helper()
	a.remove(nodesPath + "/" + name)
}

// setBootstrap sets the address of the bootstrap host; an empty one means that it is
// gone.
func (a *api) setBootstrap(address string) {
	a.t.Helper()
	metadata := object{"name": "etcd-endpoints", "annotations": object{"alpha.installer.openshift.io/etcd-bootstrap": address}}
	a.namespace("openshift-etcd")
	if !a.create(configMapsPath, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}) {
		a.patch(configMapsPath+"/etcd-endpoints", object{"metadata": metadata})
	}
}

// setRouter sets whether a ready router of an ingress controller runs on a node.
func (a *api) setRouter(controller, node string, here bool) {
	a.t.Helper()
	name := "router-" + controller + "-" + node
	if !here {
		a.remove(podsPath + "/" + name)
		return
	}
	a.namespace("openshift-ingress")
	a.create(podsPath, object{"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "labels": object{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": controller}},
		"spec":     object{"nodeName": node},
		"status":   object{"conditions": []object{{"type": "Ready", "status": "True"}}},
	})
}

func (a *api) namespace(name string) {
	a.t.Helper()
	a.create("/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name}})
}

// join replaces the node's API server and credentials.
func (n *node) join(a *api) {
	n.t.Helper()
	if n.api != nil {
		n.api.Kill()
	}
	server, err := a.Server(n.Node, netip.MustParseAddr("127.0.0.1")) // which no test takes from it
	a.must(err)
	n.api = server
	n.launch()
	n.admit(a)
}

// launch starts the node's API server, also again.
func (n *node) launch() {
	n.t.Helper()
	if err := n.api.Launch(); err != nil {
		n.t.Fatal(err)
	}
}

// admit replaces the node's credentials with valid ones.
func (n *node) admit(a *api) {
	n.t.Helper()
	for _, dir := range []string{kubeletDir, bootstrapDir} {
		_, err := kubeapi.WriteKubeconfig(n.Path("/"), dir, a.CA(), n.name, "api-int.demo.example.com:6443")
		a.must(err)
	}
}

// expire replaces the node's credentials with expired ones: 401.
func (n *node) expire(a *api) {
	n.t.Helper()
	a.must(kubeapi.ExpireKubeconfig(n.Path("/"), kubeletDir, a.CA(), n.name))
}

// refuse replaces the node's credentials with ones that RBAC refuses everything: 403.
func (n *node) refuse(a *api) {
	n.t.Helper()
	pair, err := a.CA().Client("system:node:" + n.name) // in no group
	a.must(err)
	n.Write(kubeletDir+"/pki/kubelet-client-current.pem", pair.Both())
}

// unready makes the node's API server say at /readyz that it stops, while all else goes
// on, until ready starts it again.
func (n *node) unready() {
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.api.Stop(ctx)
	}()
	n.stopping = func() { end(); <-ended }
}

func (n *node) ready() {
	n.t.Helper()
	n.stopping()
	n.stopping = nil
	n.launch()
}
