package nodes

import (
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vipgen/vipgen/internal/lazy"
)

// rightsName is the name of the rendered RBAC objects in templates/manifest; a test
// compares them.
const rightsName = "vipgen-agent"

// rights describes the rule that grants access to a resource, and the remedy where it is
// missing.
type rights struct{ rule, remedy string }

var (
	nodesRights = rights{
		`a rule with apiGroups [""], resources [nodes], verbs [get list watch]`,
		"manifests/clusterrole.yaml and manifests/clusterrolebinding.yaml (ClusterRole " + rightsName + ", bound to the group system:nodes)",
	}
	// The Node authorizer lets every node read its own pods, so there is no manifest for
	// them.
	podsRights = rights{
		`a rule with apiGroups [""], resources [pods], verbs [get list watch]`,
		"nothing of vipgen: the Node authorizer lets a node read its own pods; check that it is on",
	}
	endpointsRights = rights{
		`a rule with apiGroups [""], resources [configmaps], resourceNames [` + endpointsName + `], verbs [get list watch]`,
		"manifests/role.yaml and manifests/rolebinding.yaml (Role " + rightsName + " in " + endpointsNamespace + ", bound to the group system:nodes)",
	}
)

// refusals logs once that RBAC refuses access to a resource, and once that it no longer
// does (hard case 22).
type refusals struct {
	log     *slog.Logger
	rights  rights
	refused bool
}

// userPattern finds the refused user in an error of the API server.
var userPattern = lazy.Regexp(`User "([^"]+)"`)

// record takes the outcome of a request to list or watch a resource. Only a successful
// watch shows that no right is missing: a list went before it.
func (r *refusals) record(verb, resource string, err error) {
	switch {
	case apierrors.IsForbidden(err) && !r.refused:
		r.refused = true
		r.log.Error("the API server refuses to "+verb+" "+resource+": the last known state stays in use",
			"user", user(err), "missing", r.rights.rule, "apply", r.rights.remedy, "answer", err.Error())
	case err == nil && verb == "watch" && r.refused:
		r.refused = false
		r.log.Info("the API server allows this node to list and watch " + resource + " again")
	}
}

func user(err error) string {
	if m := userPattern().FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return "unknown"
}
