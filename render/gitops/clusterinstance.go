package gitops

import (
	"cmp"
	"fmt"

	"github.com/vipgen/vipgen/api/problem"
)

// instanceFile holds the fields of a ClusterInstance that need a check; the rest is taken as it
// is.
type instanceFile struct {
	Metadata struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		ClusterName            string            `json:"clusterName"`
		ClusterType            string            `json:"clusterType"`
		PlatformType           string            `json:"platformType"`
		InstallConfigOverrides string            `json:"installConfigOverrides"`
		ServiceNetwork         []struct{}        `json:"serviceNetwork"`
		ExtraManifestsRefs     []objectReference `json:"extraManifestsRefs"`
		Nodes                  []struct{}        `json:"nodes"`
	} `json:"spec"`
}

type objectReference struct {
	Name string `json:"name"`
}

// clusterInstance reads a ClusterInstance as its templates render it for the assisted
// installer.
func (r *reader) clusterInstance() {
	var in instanceFile
	r.problems = append(r.problems, r.main.Decode(&in)...)
	if in.Spec.ClusterType == "HostedControlPlane" {
		r.addAs("controlPlane", r.main, problem.Topology, "spec.clusterType", problem.Quote(in.Spec.ClusterType), "SNO, HighlyAvailable or HighlyAvailableArbiter", hosted)
	}
	r.install.Copy("metadata.name", r.main, "spec.clusterName")
	r.install.Copy("baseDomain", r.main, "spec.baseDomain")
	r.networks("spec")
	for i := range in.Spec.ServiceNetwork {
		r.install.Copy(fmt.Sprintf("networking.serviceNetwork[%d]", i), r.main, fmt.Sprintf("spec.serviceNetwork[%d].cidr", i))
	}
	count := r.nodesOf("spec.nodes", len(in.Spec.Nodes))
	r.pools(count["master"], count["worker"], count["arbiter"], "spec.nodes", "spec.nodes", "spec.nodes")
	r.platform("spec.platformType", count["master"] == 1)
	r.problems = append(r.problems, r.install.Overlay(r.main, "spec.installConfigOverrides")...)
	r.manifests = ManifestRefs{Namespace: in.Metadata.Namespace, Doc: r.main, Field: "spec.extraManifestsRefs"}
	for _, ref := range in.Spec.ExtraManifestsRefs {
		r.manifests.Names = append(r.manifests.Names, ref.Name)
	}
	if r.manifests.Namespace == "" {
		r.manifests.Namespace = in.Spec.ClusterName // the namespace of everything that the templates render
	}
}

// nodesOf reads the nodes of a list, with the addresses of their NMState blocks, and returns
// the number of each role.
func (r *reader) nodesOf(list string, n int) map[string]int {
	count := map[string]int{}
	for i := range n {
		from := fmt.Sprintf("%s[%d]", list, i)
		role := cmp.Or(r.main.Text(from+".role"), "master") // the default of both kinds
		count[role]++
		to := r.host(r.main, from)
		r.agent.Copy(to+".hostname", r.main, from+".hostName")
		r.agent.Put(to+".role", role, r.main, from+".role")
		r.agent.Copy(to+".networkConfig", r.main, from+".nodeNetwork.config")
	}
	return count
}
