package nodes

import (
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/vipgen/vipgen/internal/lazy"
)

// rightsName is the name of the rights that the renderer emits. templates/manifest
// has them; a test compares.
const rightsName = "vipgen-agent"

// rights are what it takes to read a resource: the rule that lets it, and what to
// do where it is missing.
type rights struct{ rule, remedy string }

var (
	nodesRights = rights{
		`a rule with apiGroups [""], resources [nodes], verbs [get list watch]`,
		"manifests/clusterrole.yaml and manifests/clusterrolebinding.yaml (ClusterRole " + rightsName + ", bound to the group system:nodes)",
	}
	// Pods of its own node are what the Node authorizer lets every node read, so
	// there is no manifest for them.
	podsRights = rights{
		`a rule with apiGroups [""], resources [pods], verbs [get list watch]`,
		"nothing of vipgen: the Node authorizer lets a node read its own pods; check that it is on",
	}
	endpointsRights = rights{
		`a rule with apiGroups [""], resources [configmaps], resourceNames [` + endpointsName + `], verbs [get list watch]`,
		"manifests/role.yaml and manifests/rolebinding.yaml (Role " + rightsName + " in " + endpointsNamespace + ", bound to the group system:nodes)",
	}
)

// refusals says once that RBAC refuses to show a resource, and once that it no
// longer does (hard case 22).
type refusals struct {
	log     *slog.Logger
	rights  rights
	refused bool
}

// userOf finds whom the API server refused.
var userOf = lazy.Regexp(`User "([^"]+)"`)

// note looks at the outcome of a request to list or watch a resource. Only a
// watch that comes about shows that nothing is missing: a list went before it.
func (r *refusals) note(verb, resource string, err error) {
	switch {
	case apierrors.IsForbidden(err) && !r.refused:
		r.refused = true
		r.log.Error("the API server refuses to "+verb+" "+resource+"; going on with what was known last",
			"user", user(err), "missing", r.rights.rule, "apply", r.rights.remedy, "answer", err.Error())
	case err == nil && verb == "watch" && r.refused:
		r.refused = false
		r.log.Info("the API server lets this node list and watch " + resource + " again")
	}
}

func user(err error) string {
	if m := userOf().FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return "unknown"
}
