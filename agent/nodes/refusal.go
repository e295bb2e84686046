package nodes

import (
	"fmt"
	"log/slog"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Files and name of the rights that the renderer emits. templates/manifest has
// them; a test compares.
const (
	rightsName  = "vipgen-agent"
	rightsFiles = "manifests/clusterrole.yaml and manifests/clusterrolebinding.yaml"
)

// refusals says once that RBAC refuses to show a resource, and once that it no
// longer does (hard case 22).
type refusals struct {
	log     *slog.Logger
	refused bool
}

// userOf finds whom the API server refused.
var userOf = regexp.MustCompile(`User "([^"]+)"`)

// note looks at the outcome of a request to list or watch a resource. Only a
// watch that comes about shows that nothing is missing: a list went before it.
func (r *refusals) note(verb, resource string, err error) {
	switch {
	case apierrors.IsForbidden(err) && !r.refused:
		r.refused = true
		r.log.Error("the API server refuses to "+verb+" "+resource+"; going on with what was known last",
			"user", user(err), "missing", rule(resource), "apply", remedy(resource), "answer", err.Error())
	case err == nil && verb == "watch" && r.refused:
		r.refused = false
		r.log.Info("the API server lets this node list and watch " + resource + " again")
	}
}

func user(err error) string {
	if m := userOf.FindStringSubmatch(err.Error()); m != nil {
		return m[1]
	}
	return "unknown"
}

func rule(resource string) string {
	return fmt.Sprintf(`a rule with apiGroups [""], resources [%s], verbs [get list watch]`, resource)
}

// remedy says what to do. Pods of its own node are what the Node authorizer
// lets every node read, so there is no manifest for them.
func remedy(resource string) string {
	if resource != "nodes" {
		return "nothing of vipgen: the Node authorizer lets a node read its own " + resource + "; check that it is on"
	}
	return rightsFiles + " (ClusterRole " + rightsName + ", bound to the group system:nodes)"
}
