package render

import (
	"fmt"
	"path"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/problem"
)

// ConfigMapName is the name of the ConfigMap with a cluster's manifests, which a
// ClusterInstance or an AgentClusterInstall references.
const ConfigMapName = "vipgen-extra-manifests"

// maxConfigMap is how many bytes the API takes in a ConfigMap's data: MaxSecretSize
// in Kubernetes, which it has for both.
const maxConfigMap = 1 << 20

// configMap makes the ConfigMap that gives an installation all manifests of a
// cluster, each under the name that it has in an installer's asset directory.
func (r *Renderer) configMap(c *Cluster, w Want) (OutputFile, error) {
	files, err := r.InstallDir(c, w)
	if err != nil {
		return OutputFile{}, err
	}
	data, size := map[string]string{}, 0
	for _, f := range files {
		name := path.Base(f.Path)
		data[name] = string(f.Data)
		size += len(name) + len(f.Data)
	}
	if size > maxConfigMap {
		return OutputFile{}, problem.List{{Severity: problem.Error, Code: problem.BadValue, Field: "--format", Found: fmt.Sprintf("a ConfigMap of %d bytes", size),
			Expected: fmt.Sprintf("at most %d, as the API takes", maxConfigMap), Hint: "leave custom pools to --format machineconfig --role, applied after the installation"}}
	}
	meta := map[string]any{"name": ConfigMapName, "annotations": map[string]string{"vipgen.io/cluster": c.Config.Metadata.Name}}
	if c.ManifestRefs != nil && c.ManifestRefs.Namespace != "" {
		meta["namespace"] = c.ManifestRefs.Namespace
	}
	text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
	return OutputFile{Path: "configmaps/" + ConfigMapName + ".yaml", Data: text}, err
}

// Unreferenced warns where the object that describes a cluster does not reference
// the ConfigMap.
func (c *Cluster) Unreferenced(w Want) problem.List {
	refs := c.ManifestRefs
	if refs == nil || !slices.Contains(w.Formats, FormatConfigMap) || slices.Contains(refs.Names, ConfigMapName) {
		return nil
	}
	return refs.Doc.Locate(problem.List{{Severity: problem.Warning, Code: problem.MissingField, Field: refs.Field,
		Found: "no " + ConfigMapName, Expected: "- name: " + ConfigMapName, Hint: "without it nothing of the ConfigMap reaches the cluster"}})
}
