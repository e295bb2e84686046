package gitops

import (
	"fmt"

	"github.com/vipgen/vipgen/api/problem"
)

// siteCluster holds the fields of a cluster in a SiteConfig that need a check; the rest is
// taken as it is.
type siteCluster struct {
	ClusterName            string     `json:"clusterName"`
	InstallConfigOverrides string     `json:"installConfigOverrides"`
	Nodes                  []struct{} `json:"nodes"`
	ExtraManifestPath      string     `json:"extraManifestPath"`
	ExtraManifests         struct {
		SearchPaths []string `json:"searchPaths"`
	} `json:"extraManifests"`
}

// siteClusters is the path of a SiteConfig's clusters.
const siteClusters = "spec.clusters"

// siteConfig reads a cluster of a SiteConfig as ZTP's generator translates it for the assisted
// installer (openshift-kni/cnf-features-deploy, siteConfig.go, Clusters, and
// siteConfigBuilder.go, getExtraManifest).
func (r *reader) siteConfig() {
	var in siteCluster
	r.problems = append(r.problems, r.main.DecodeAt(r.spec, &in)...)
	r.install.Copy("metadata.name", r.main, r.spec+".clusterName")
	r.install.Copy("baseDomain", r.main, "spec.baseDomain")
	r.networks(r.spec, "serviceNetwork")
	nodes := r.spec + ".nodes"
	count := r.nodesOf(nodes, len(in.Nodes))
	masters, workers := count["master"], len(in.Nodes)-count["master"]
	switch {
	case masters == 1:
		workers = 0 // they join later: the generator installs the control plane alone
	case masters != 3 && (len(in.Nodes) > 0 || !r.main.Has(nodes)):
		r.addAs("controlPlane", r.main, problem.Topology, nodes, fmt.Sprintf("%d control-plane nodes", masters), "1 or 3",
			"a SiteConfig has no others; a ClusterInstance may")
	}
	r.pools(masters, workers, 0, nodes, nodes, nodes)
	r.platform(r.spec, masters == 1) // a SiteConfig has no platformType
	r.problems = append(r.problems, r.install.Overlay(r.main, r.spec+".installConfigOverrides")...)
	r.manifests = ManifestRefs{Folders: true, Namespace: in.ClusterName, Doc: r.main, Field: r.spec + ".extraManifests.searchPaths", Names: in.ExtraManifests.SearchPaths}
	if len(in.ExtraManifests.SearchPaths) == 0 && in.ExtraManifestPath != "" {
		r.manifests.Names = []string{in.ExtraManifestPath}
	}
}

// noSiteClusters reports what a SiteConfig has in place of a list of clusters.
func (r *reader) noSiteClusters() problem.List {
	var in struct {
		Spec struct {
			Clusters []struct{} `json:"clusters"`
		} `json:"spec"`
	}
	r.problems = append(r.problems, r.main.Decode(&in)...)
	if len(r.problems) == 0 {
		r.add(r.main, problem.MissingField, siteClusters, "nothing", "a list of clusters, each with clusterName and nodes", "")
	}
	return r.main.Unfinished(r.report())
}
