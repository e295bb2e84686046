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

// maxConfigMap is the API's limit for a ConfigMap's data, in bytes: Kubernetes applies
// MaxSecretSize to both.
const maxConfigMap = 1 << 20

// extraManifestsFolder is the folder of manifests that a SiteConfig names.
const extraManifestsFolder = "extra-manifests"

// extraManifests returns all manifests of a cluster, named as in an installer's asset
// directory: as a folder, or as a ConfigMap.
func (c *Cluster) extraManifests(format Format, w Want) ([]OutputFile, error) {
	files, err := c.InstallDir(w)
	if err != nil {
		return nil, err
	}
	for i := range files {
		files[i].Path = extraManifestsFolder + "/" + path.Base(files[i].Path)
	}
	if format == FormatExtraManifests {
		return files, nil
	}
	f, err := configMap(c, files)
	return []OutputFile{f}, err
}

func configMap(c *Cluster, files []OutputFile) (OutputFile, error) {
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

// Unreferenced warns where the cluster's object does not reference the folder or ConfigMap with
// its manifests.
func (c *Cluster) Unreferenced(w Want) problem.List {
	refs := c.ManifestRefs
	if refs == nil {
		return nil
	}
	p := problem.Problem{Severity: problem.Warning, Code: problem.MissingField, Field: refs.Field}
	isFolder := func(name string) bool { return path.Base(path.Clean(name)) == extraManifestsFolder }
	switch configMap := slices.Contains(w.Formats, FormatConfigMap); {
	case configMap && refs.Folders:
		p.Found, p.Expected = "--format configmap", "--format extra-manifests"
		p.Hint = "a SiteConfig takes manifests from folders"
	case configMap && !slices.Contains(refs.Names, ConfigMapName):
		p.Found, p.Expected = "no "+ConfigMapName, "- name: "+ConfigMapName
		p.Hint = "without it nothing of the ConfigMap reaches the cluster"
	case refs.Folders && slices.Contains(w.Formats, FormatExtraManifests) && !slices.ContainsFunc(refs.Names, isFolder):
		p.Found, p.Expected = "no folder "+extraManifestsFolder, "its path, such as - "+extraManifestsFolder+"/"
		p.Hint = "without it nothing of the folder reaches the cluster"
	default:
		return nil
	}
	return refs.Doc.Locate(problem.List{p})
}
