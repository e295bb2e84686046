package image

import (
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

// krewManifest is the file with a release's manifest for krew, and downloads the address of the
// archives.
const (
	krewManifest = "krew-vipgen.yaml"
	downloads    = "https://github.com/vipgen/vipgen/releases/download/"
)

// krew writes the manifest of the archives in a directory
// (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
func (r Release) krew(dir string) error {
	type object map[string]any
	var platforms []object
	for _, p := range r.Archives {
		name, ending := r.archiveName(p)
		sum, err := sha256Of(filepath.Join(dir, name+ending))
		if err != nil {
			return err
		}
		bin := inSystem(p, pluginProgram)
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": p.OS, "arch": p.Architecture}},
			"uri":      downloads + r.Version + "/" + name + ending,
			"sha256":   sum,
			"files":    []object{{"from": name + "/" + bin, "to": "."}, {"from": name + licenseDir + "/" + modulePath + "/LICENSE", "to": "."}},
			"bin":      bin,
		})
	}
	data, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": object{"name": "vipgen"},
		"spec": object{
			"version": r.Version, "homepage": "https://" + modulePath, "platforms": platforms,
			"shortDescription": "Diagnose virtual IPs of on-premises clusters",
			"description":      "Shows which node holds each virtual IP of an on-premises Kubernetes or OpenShift\ncluster, why VIPs moved, and what an update of vipgen's files changes.\n",
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, krewManifest), data, 0o644)
}

// archiveName returns the name of a platform's archive, and its suffix.
func (r Release) archiveName(p v1.Platform) (name, ending string) {
	name, ending = strings.Join([]string{"vipgen", r.Version, p.OS, p.Architecture}, "-"), ".tar.gz"
	if p.OS == "windows" {
		ending = ".zip"
	}
	return name, ending
}
