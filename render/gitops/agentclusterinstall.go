package gitops

import (
	"cmp"
	"slices"
	"strings"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/render/source"
)

// Annotations that the assisted installer reads.
const (
	overridesAnnotation = `metadata.annotations["agent-install.openshift.io/install-config-overrides"]`
	roleAnnotation      = `metadata.annotations["bmac.agent-install.openshift.io/role"]`
	hostNameAnnotation  = `metadata.annotations["bmac.agent-install.openshift.io/hostname"]`
)

// agentFile holds the fields of an AgentClusterInstall that need a check; the rest is taken as
// it is.
type agentFile struct {
	Metadata struct {
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		ClusterDeploymentRef   objectReference   `json:"clusterDeploymentRef"`
		ManifestsConfigMapRef  *objectReference  `json:"manifestsConfigMapRef"`
		ManifestsConfigMapRefs []objectReference `json:"manifestsConfigMapRefs"`
		PlatformType           string            `json:"platformType"`
		Networking             struct {
			UserManagedNetworking bool `json:"userManagedNetworking"`
		} `json:"networking"`
		LoadBalancer struct {
			Type string `json:"type"`
		} `json:"loadBalancer"`
		ProvisionRequirements struct {
			ControlPlaneAgents int `json:"controlPlaneAgents"`
			WorkerAgents       int `json:"workerAgents"`
			ArbiterAgents      int `json:"arbiterAgents"`
		} `json:"provisionRequirements"`
	} `json:"spec"`
}

// agentClusterInstall reads an AgentClusterInstall and the objects of its file and folder that
// belong to it.
func (r *reader) agentClusterInstall(docs []*source.Document) {
	var in agentFile
	r.problems = append(r.problems, r.main.Decode(&in)...)
	r.deployment(docs, in.Spec.ClusterDeploymentRef.Name)
	r.networks("spec.networking", "serviceNetwork")
	const agents = "spec.provisionRequirements."
	need := in.Spec.ProvisionRequirements
	r.pools(need.ControlPlaneAgents, need.WorkerAgents, need.ArbiterAgents,
		agents+"controlPlaneAgents", agents+"workerAgents", agents+"arbiterAgents")
	r.platform("spec.platformType", need.ControlPlaneAgents == 1)
	r.loadBalancer(in.Spec.LoadBalancer.Type)
	r.problems = append(r.problems, r.install.Overlay(r.main, overridesAnnotation)...)
	r.staticNodes(docs, in.Spec.ClusterDeploymentRef.Name)
	r.manifests = ManifestRefs{Namespace: in.Metadata.Namespace, Doc: r.main, Field: "spec.manifestsConfigMapRefs"}
	if in.Spec.ManifestsConfigMapRef != nil && len(in.Spec.ManifestsConfigMapRefs) == 0 {
		in.Spec.ManifestsConfigMapRefs = []objectReference{*in.Spec.ManifestsConfigMapRef}
	}
	for _, ref := range in.Spec.ManifestsConfigMapRefs {
		r.manifests.Names = append(r.manifests.Names, ref.Name)
	}
}

// deployment reads the cluster's name and domain from its ClusterDeployment.
func (r *reader) deployment(docs []*source.Document, name string) {
	const ref = "spec.clusterDeploymentRef.name"
	if name == "" {
		r.add(r.main, problem.MissingField, ref, "nothing", "the name of the ClusterDeployment", "")
		return
	}
	for _, d := range docs {
		if d.Text("kind") == clusterDeployment && d.Text("metadata.name") == name && r.sameNamespace(d) {
			r.version(d)
			r.install.Copy("metadata.name", d, "spec.clusterName")
			r.install.Copy("baseDomain", d, "spec.baseDomain")
			return
		}
	}
	if !r.unread { // it may be in that file
		r.add(r.main, problem.MissingField, ref, "no ClusterDeployment "+problem.Quote(name)+" in this file or folder",
			"the ClusterDeployment, which has the cluster's name and base domain", "")
	}
	// Consequences of the missing object are not reported.
	r.install.Put("metadata.name", "unknown", r.main, ref)
	r.install.Put("baseDomain", "unknown", r.main, ref)
}

// sameNamespace reports whether an object may be in the namespace of the cluster's object, as
// references without a namespace require. Repositories leave namespaces to kustomize.
func (r *reader) sameNamespace(d *source.Document) bool {
	own, other := r.main.Text("metadata.namespace"), d.Text("metadata.namespace")
	return own == "" || other == "" || own == other
}

// loadBalancer translates the type, whose default has another name in install-configs.
func (r *reader) loadBalancer(kind string) {
	const field = "spec.loadBalancer.type"
	switch kind {
	case "", "ClusterManaged":
	case "UserManaged":
		for _, platform := range []string{"baremetal", "vsphere"} {
			if r.install.Document().Has("platform." + platform) {
				r.install.Copy("platform."+platform+".loadBalancer.type", r.main, field)
				return
			}
		}
		r.add(r.main, problem.ConflictingFields, field, problem.Quote(kind), "ClusterManaged, or platformType BareMetal or VSphere", "")
	default:
		r.add(r.main, problem.BadValue, field, problem.Quote(kind), "ClusterManaged or UserManaged", "")
	}
}

// staticNodes reads the nodes of the cluster's NMStateConfigs, with the names and roles of
// BareMetalHosts with the same MAC address.
func (r *reader) staticNodes(docs []*source.Document, deployment string) {
	wanted := r.selector(docs, deployment)
	for _, d := range docs {
		if d.Text("kind") != nmStateConfig || !r.sameNamespace(d) || !wanted(d) {
			continue
		}
		r.version(d)
		to := r.host(d, "spec")
		r.agent.Copy(to+".networkConfig", d, "spec.config")
		if host := bareMetalHostOf(docs, d); host != nil {
			r.agent.Copy(to+".hostname", host, hostNameAnnotation)
			r.agent.Copy(to+".role", host, roleAnnotation)
		}
	}
}

// selector returns a filter for the NMStateConfigs that an InfraEnv of the cluster selects;
// without an InfraEnv, it accepts all.
func (r *reader) selector(docs []*source.Document, deployment string) func(*source.Document) bool {
	var envs []infraEnvFile
	for _, d := range docs {
		if d.Text("kind") != infraEnv || !r.sameNamespace(d) || cmp.Or(d.Text("spec.clusterRef.name"), deployment) != deployment {
			continue
		}
		var env infraEnvFile
		r.problems = append(r.problems, d.Decode(&env)...)
		if len(env.Spec.Selector.MatchLabels) > 0 {
			envs = append(envs, env)
		}
	}
	return func(d *source.Document) bool {
		if len(envs) == 0 {
			return true
		}
		var labels struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		_ = d.Decode(&labels)
		return slices.ContainsFunc(envs, func(env infraEnvFile) bool {
			for name, value := range env.Spec.Selector.MatchLabels {
				if got, ok := labels.Metadata.Labels[name]; !ok || got != value {
					return false
				}
			}
			return true
		})
	}
}

type infraEnvFile struct {
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"nmStateConfigLabelSelector"`
	} `json:"spec"`
}

// bareMetalHostOf returns the BareMetalHost with the MAC address of one of an NMStateConfig's
// interfaces.
func bareMetalHostOf(docs []*source.Document, config *source.Document) *source.Document {
	var in struct {
		Spec struct {
			Interfaces []struct {
				MAC string `json:"macAddress"`
			} `json:"interfaces"`
		} `json:"spec"`
	}
	_ = config.Decode(&in)
	for _, d := range docs {
		mac := d.Text("spec.bootMACAddress")
		if d.Text("kind") != bareMetalHost || mac == "" {
			continue
		}
		for _, i := range in.Spec.Interfaces {
			if strings.EqualFold(i.MAC, mac) {
				return d
			}
		}
	}
	return nil
}
