package kubeapi

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vipgen/vipgen/internal/testbed/authority"
)

// The groups of users, and the prefix of nodes' names.
const (
	administrators = "system:masters"
	nodeGroup      = "system:nodes"
	nodeUser       = "system:node:"
)

// The only ConfigMap that nodes may read with the rendered RBAC.
const (
	endpointsNamespace = "openshift-etcd"
	endpointsName      = "etcd-endpoints"
)

// user is the author of a request.
type user struct {
	name   string
	groups []string
}

// identify returns the author of a request, by the client certificate.
func identify(ca *authority.Authority, r *http.Request) (user, error) {
	if len(r.TLS.PeerCertificates) == 0 {
		return user{name: "system:anonymous"}, nil
	}
	cert := r.TLS.PeerCertificates[0]
	if _, err := cert.Verify(x509.VerifyOptions{Roots: ca.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return user{}, apierrors.NewUnauthorized("Unauthorized")
	}
	return user{cert.Subject.CommonName, cert.Subject.Organization}, nil
}

// authorize permits administrators everything, and a node to read what the RBAC that vipgen
// renders permits: all nodes, its own pods, and the bootstrap host's address. It does not
// depend on whether that RBAC was applied.
func (u user) authorize(sel selection, verb string) error {
	if slices.Contains(u.groups, administrators) {
		return nil
	}
	node, isNode := strings.CutPrefix(u.name, nodeUser)
	reads := verb == "get" || verb == "list" || verb == "watch"
	if isNode && verb == "patch" && sel.kind == "Node" && sel.name == node {
		return nil // its own Node, like the Node authorizer and NodeRestriction
	}
	if isNode && reads && slices.Contains(u.groups, nodeGroup) && sel.isFor(node) {
		return nil
	}
	where := "at the cluster scope"
	if sel.namespace != "" {
		where = fmt.Sprintf("in the namespace %q", sel.namespace)
	}
	says := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", u.name, verb, sel.Resource, sel.Group, where)
	return apierrors.NewForbidden(sel.GroupResource(), sel.name, errors.New(says))
}

// isFor reports whether a node may read the selected objects.
func (s selection) isFor(node string) bool {
	is := func(field, value string) bool {
		got, ok := s.fields.RequiresExactMatch(field)
		return ok && got == value
	}
	switch s.kind {
	case "Node":
		return true
	case "Pod":
		return is("spec.nodeName", node)
	case "ConfigMap":
		return s.namespace == endpointsNamespace && is("metadata.name", endpointsName)
	}
	return false
}
