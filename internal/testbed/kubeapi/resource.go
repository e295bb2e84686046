package kubeapi

import (
	"errors"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind of objects that the stand-in stores.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
	status     bool // is a subresource
	tombstone  bool // a deletion returns the deleted object
}

var (
	core         = schema.GroupVersion{Version: "v1"}
	rbac         = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	coordination = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
)

// resources are the kinds of the stand-in: those that a cluster's nodes read, those that the
// real server requires for them, and the leases of clients.
var resources = []resource{
	{core.WithResource("nodes"), "Node", false, true, false},
	{core.WithResource("namespaces"), "Namespace", false, true, true},
	{core.WithResource("pods"), "Pod", true, true, true},
	{core.WithResource("configmaps"), "ConfigMap", true, false, false},
	{rbac.WithResource("clusterroles"), "ClusterRole", false, false, false},
	{rbac.WithResource("clusterrolebindings"), "ClusterRoleBinding", false, false, false},
	{rbac.WithResource("roles"), "Role", true, false, false},
	{rbac.WithResource("rolebindings"), "RoleBinding", true, false, false},
	{coordination.WithResource("leases"), "Lease", true, false, false},
}

// objectPath identifies the objects of a collection, or one of them.
type objectPath struct {
	*resource
	namespace string // empty for all, and for cluster-scoped objects
	name      string // empty for a collection
	status    bool   // the object's status alone
}

// errNoPath is for paths outside of the API, errNoResource for those of unknown resources.
var (
	errNoPath     = errors.New("404 page not found")
	errNoResource = newStatusError(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
)

// parsePath parses a path such as /api/v1/namespaces/x/pods/y/status.
func parsePath(path string) (p objectPath, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return p, errNoPath
	}
	if len(parts) >= 3 && parts[0] == "namespaces" {
		if sub := findResource(gv.WithResource(parts[2])); sub != nil && sub.namespaced {
			p.namespace, parts = parts[1], parts[2:]
		}
	}
	p.resource = findResource(gv.WithResource(parts[0]))
	if p.resource == nil || len(parts) > 3 {
		return p, errNoResource
	}
	if len(parts) > 1 {
		p.name = parts[1]
	}
	if len(parts) > 2 {
		p.status = p.resource.status && parts[2] == "status"
		if !p.status {
			return p, errNoResource
		}
	}
	if p.name != "" && p.namespaced && p.namespace == "" {
		return p, errNoResource
	}
	return p, nil
}

func findResource(r schema.GroupVersionResource) *resource {
	for i := range resources {
		if resources[i].GroupVersionResource == r {
			return &resources[i]
		}
	}
	return nil
}

func (p objectPath) verb(method string, watch bool) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodPatch:
		return "patch"
	case method == http.MethodDelete:
		return "delete"
	case watch:
		return "watch"
	case p.name == "":
		return "list"
	}
	return "get"
}
