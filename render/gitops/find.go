package gitops

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/lazy"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/render/source"
)

const installConfig = "InstallConfig"

var (
	clusterKind   = lineOf(describesClusters)
	companionKind = lineOf(func(k kind) bool { return k.companion })
	otherKind     = lineOf(func(k kind) bool { return !k.cluster })
	// A ClusterDeployment references the kind too, by group and version.
	clusterVersion = lazy.Regexp(`apiVersion"?:[ \t]*["']?(?:` + groups() + `)/`)
	anyKind        = lazy.Regexp(`(?m)^kind:[ \t]*["']?([A-Za-z]+)`)
)

// HasCluster reports whether a file may hold an object that describes a cluster. It searches
// the text, without parsing.
func HasCluster(data []byte) bool { return clusterKind().Match(data) && clusterVersion().Match(data) }

// HasCompanion reports whether a file may hold objects that belong to an AgentClusterInstall.
func HasCompanion(data []byte) bool { return companionKind().Match(data) }

// HasOther reports whether a file may hold objects that Instead has advice for.
func HasOther(data []byte) bool { return otherKind().Match(data) }

// IsOther reports whether a file holds Kubernetes objects, none of which describes a cluster.
func IsOther(data []byte) bool {
	m := anyKind().FindSubmatch(data)
	return m != nil && string(m[1]) != installConfig && !HasCluster(data)
}

// names matches names and namespaces in the text of objects.
var names = lazy.Regexp(`(?m)(?:^|[{,])[ \t"{-]*(?:name|namespace)"?:[ \t]*["']?([a-z0-9.-]+)`)

// Related reports whether other may hold objects of the clusters in a file: it has one of their
// names or namespaces.
func Related(clusters, other []byte) bool {
	return slices.ContainsFunc(names().FindAllSubmatch(clusters, -1), func(m [][]byte) bool { return bytes.Contains(other, m[1]) })
}

// object is an object that describes a cluster, or a cluster of a SiteConfig.
type object struct {
	doc *source.Document
	// spec is the path of the cluster's fields
	kind, spec, name string
}

// Names returns the names of the clusters that a file describes, in its order.
func Names(file string, data []byte) ([]string, problem.List) {
	docs, list := source.ParseAll(file, data)
	out := lists.Map(clusters(docs), func(o object) string { return o.name })
	return out, list
}

func clusters(docs []*source.Document) []object {
	var out []object
	for _, d := range docs {
		switch kind := d.Text("kind"); kind {
		case kindClusterInstance:
			out = append(out, object{d, kind, "spec", cmp.Or(d.Text("spec.clusterName"), d.Text("metadata.name"))})
		case kindAgentClusterInstall:
			out = append(out, object{d, kind, "spec", d.Text("metadata.name")})
		case kindSiteConfig:
			for i := range max(d.Len(siteClusters), 1) { // read one without any, to report it
				at := fmt.Sprintf("%s[%d]", siteClusters, i)
				out = append(out, object{d, kind, at, cmp.Or(d.Text(at+".clusterName"), d.Text("metadata.name"))})
			}
		}
	}
	return out
}

// choose returns the cluster with a name, or the only one.
func choose(file, name string, all []object) (*object, problem.List) {
	if name == "" && len(all) == 1 {
		return &all[0], nil
	}
	var names []string
	for i, o := range all {
		if name != "" && o.name == name {
			return &all[i], nil
		}
		names = append(names, problem.Quote(o.name))
	}
	p := problem.Problem{File: file, Severity: problem.Error, Code: problem.WrongKind}
	switch {
	case len(all) == 0:
		p.Found, p.Expected = described("no "), "an object that describes a cluster"
	case name == "":
		p.Found, p.Expected = fmt.Sprintf("%d clusters", len(all)), "one cluster"
		p.Hint = fmt.Sprintf("name it, as in %s#%s", file, all[0].name)
	default:
		p.Found, p.Expected = "no cluster "+problem.Quote(name), strings.Join(slices.Compact(names), " or ")
	}
	return nil, problem.List{p}
}
