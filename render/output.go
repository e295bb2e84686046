package render

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
)

// Format is an output format.
type Format string

const (
	FormatMachineConfig Format = "machineconfig"
	FormatIgnition      Format = "ignition"
	FormatButane        Format = "butane"
	FormatFiles         Format = "files"
	// FormatConfigMap is a ConfigMap with the MachineConfigs and manifests.
	FormatConfigMap Format = "configmap"
	// FormatExtraManifests is a folder with the same content, one object per file.
	FormatExtraManifests Format = "extra-manifests"
)

func Formats() []Format {
	return []Format{FormatMachineConfig, FormatIgnition, FormatButane, FormatFiles, FormatConfigMap, FormatExtraManifests}
}

// OutputFile is an output file with a relative path.
type OutputFile struct {
	Path string
	Data []byte
}

// Want selects the output for a cluster.
type Want struct {
	// Formats are the formats of a tree.
	Formats []Format
	// Roles limits the output to some pools; empty means all.
	Roles []string
	// Kustomization adds a kustomization.yaml to a tree.
	Kustomization bool
}

// Encoder returns the encoder for the cluster's operating system.
func (c *Cluster) Encoder() (*ignition.Encoder, error) {
	t, err := ignition.ParseTarget(c.OS, c.Version)
	return ignition.NewEncoder(t), err
}

// Stream returns one YAML stream for `oc apply -f -`: the MachineConfigs, then the cluster
// manifests that go with them; or the wanted format, if that holds both.
func (c *Cluster) Stream(w Want) ([]byte, error) {
	if !w.withManifests() {
		w.Formats = []Format{FormatMachineConfig}
	}
	files, err := c.Tree(w)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range files {
		b.WriteString("---\n")
		b.Write(f.Data)
	}
	return b.Bytes(), nil
}

// InstallDir returns the files for an installer's asset directory: all in openshift/, one
// object each, as installers read them.
func (c *Cluster) InstallDir(w Want) ([]OutputFile, error) {
	if err := c.Installable(); err != nil {
		return nil, err
	}
	w.Formats = []Format{FormatMachineConfig}
	files, err := c.Tree(w)
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		name := strings.TrimSuffix(path.Base(f.Path), ".yaml")
		if strings.HasPrefix(f.Path, "machineconfigs/") {
			name = strings.TrimPrefix(strings.Replace(name, "-vipgen", "", 1), "99-") + "_machineconfig"
		}
		files[i].Path = "openshift/99_vipgen_" + name + ".yaml"
	}
	return files, nil
}

// Tree returns the files of a directory in the order of writing: by format, then by pool, the
// cluster manifests last.
func (c *Cluster) Tree(w Want) ([]OutputFile, error) {
	bundles, err := c.Bundles()
	if err != nil {
		return nil, err
	}
	enc, err := c.Encoder()
	if err != nil {
		return nil, err
	}
	if err := w.check(c); err != nil {
		return nil, err
	}
	var out []OutputFile
	for _, format := range w.Formats {
		if format.HoldsManifests() {
			files, err := c.extraManifests(format, w)
			if err != nil {
				return nil, err
			}
			out = append(out, files...)
			continue
		}
		files, errs := make([][]OutputFile, len(bundles)), make([]error, len(bundles))
		var pools sync.WaitGroup
		for i, b := range bundles {
			if len(w.Roles) > 0 && !slices.Contains(w.Roles, b.Role) {
				continue
			}
			pools.Go(func() { files[i], errs[i] = encode(enc, format, b, bundles, c) })
		}
		pools.Wait()
		for i, b := range bundles {
			if errs[i] != nil {
				return nil, fmt.Errorf("pool %s: %w", b.Role, errs[i])
			}
			out = append(out, files[i]...)
		}
	}
	if len(w.Roles) > 0 || c.OS != ignition.OpenShift {
		return out, nil
	}
	if w.withManifests() {
		if w.Kustomization {
			out = append(out, kustomization(out, "configmaps/"))
		}
		return out, nil
	}
	manifests, err := c.Manifests()
	if err != nil {
		return nil, err
	}
	for _, m := range manifests {
		out = append(out, OutputFile{Path: "manifests/" + m.Name + ".yaml", Data: m.Contents})
	}
	if w.Kustomization {
		out = append(out, kustomization(out, "machineconfigs/", "manifests/"))
	}
	return out, nil
}

// HoldsManifests reports whether a format holds the cluster manifests, next to MachineConfigs.
func (f Format) HoldsManifests() bool { return f == FormatConfigMap || f == FormatExtraManifests }

// withManifests reports whether a wanted format holds the manifests already.
func (w Want) withManifests() bool {
	return len(w.Formats) > 0 && !slices.ContainsFunc(w.Formats, func(f Format) bool { return !f.HoldsManifests() })
}

// kustomization returns a kustomization.yaml that lists the files of some folders of a tree, in
// its order.
func kustomization(files []OutputFile, folders ...string) OutputFile {
	var b bytes.Buffer
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n")
	for _, f := range files {
		if slices.ContainsFunc(folders, func(dir string) bool { return strings.HasPrefix(f.Path, dir) }) {
			b.WriteString("- " + f.Path + "\n")
		}
	}
	return OutputFile{Path: "kustomization.yaml", Data: b.Bytes()}
}

// check refuses pools that the cluster does not have and formats that the operating system does
// not support.
func (w Want) check(c *Cluster) error {
	for _, role := range w.Roles {
		if !slices.Contains(c.Roles, role) {
			return fmt.Errorf("no pool %q: this cluster has %s", role, strings.Join(c.Roles, ", "))
		}
	}
	for _, f := range []Format{FormatMachineConfig, FormatConfigMap, FormatExtraManifests} {
		if c.OS != ignition.OpenShift && slices.Contains(w.Formats, f) {
			return fmt.Errorf("format %s is for OpenShift, not for %s: choose ignition, butane or files", f, c.OS)
		}
	}
	if slices.ContainsFunc(w.Formats, Format.HoldsManifests) {
		return c.Installable()
	}
	return nil
}

func encode(enc *ignition.Encoder, format Format, b ignition.Bundle, all []ignition.Bundle, c *Cluster) ([]OutputFile, error) {
	name := MachineConfigName(b.Role)
	meta := ignition.Metadata{Name: name, Annotations: map[string]string{"vipgen.io/cluster": c.Config.Metadata.Name}}
	switch {
	case format != FormatMachineConfig:
		return Encode(enc, format, b, meta)
	case b.Role == v1alpha1.RoleBootstrap:
		return nil, nil // not a pool: the operator never sees that host
	}
	data, err := enc.MachineConfig(inherit(b, all), meta)
	return []OutputFile{{Path: "machineconfigs/" + name + ".yaml", Data: data}}, err
}

// Encode returns a bundle in a format of files for a node: Ignition, Butane or plain files.
func Encode(enc *ignition.Encoder, format Format, b ignition.Bundle, meta ignition.Metadata) ([]OutputFile, error) {
	switch format {
	case FormatIgnition:
		data, err := enc.Ignition(b)
		return []OutputFile{{Path: "ignition/" + b.Role + ".ign", Data: data}}, err
	case FormatButane:
		data, err := enc.Butane(b, meta)
		return []OutputFile{{Path: "butane/" + b.Role + ".bu", Data: data}}, err
	case FormatFiles:
		return plainFiles(b), nil
	}
	return nil, fmt.Errorf("no format %q", format)
}

// MachineConfigName returns a name that sorts after the operator's own. A custom
// pool's nodes get the worker's MachineConfig too, and of two files with one
// path the one in the MachineConfig that is merged last wins. From OpenShift 4.15 on
// that is the pool's own; before, the one whose name sorts last, so its name starts
// with the worker's (hard case 50).
func MachineConfigName(role string) string {
	switch role {
	case v1alpha1.RoleMaster, v1alpha1.RoleWorker, v1alpha1.RoleArbiter, v1alpha1.RoleBootstrap:
		return "99-" + role + "-vipgen"
	}
	return "99-worker-vipgen-" + role
}

// baseRole returns the operator's pool that a pool inherits from, or the pool itself.
func baseRole(role string) string {
	if MachineConfigName(role) == "99-"+role+"-vipgen" {
		return role
	}
	return v1alpha1.RoleWorker
}

// inherit removes from a custom pool's bundle what its nodes get from the worker pool.
func inherit(b ignition.Bundle, all []ignition.Bundle) ignition.Bundle {
	if baseRole(b.Role) == b.Role {
		return b
	}
	i := slices.IndexFunc(all, func(x ignition.Bundle) bool { return x.Role == v1alpha1.RoleWorker })
	worker, own := all[i], ignition.Bundle{Role: b.Role}
	for _, f := range b.Files {
		same := func(x ignition.File) bool {
			return x.Path == f.Path && x.Mode == f.Mode && bytes.Equal(x.Contents, f.Contents)
		}
		if !slices.ContainsFunc(worker.Files, same) {
			own.Files = append(own.Files, f)
		}
	}
	return own // all pools but the bootstrap have the same units
}

// plainFiles returns a bundle's files under their paths on the node.
func plainFiles(b ignition.Bundle) []OutputFile {
	var out []OutputFile
	for _, f := range b.Files {
		out = append(out, OutputFile{Path: path.Join("files", b.Role, f.Path), Data: f.Contents})
	}
	for _, u := range b.Units {
		out = append(out, OutputFile{Path: path.Join("files", b.Role, "etc/systemd/system", u.Name), Data: []byte(u.Contents)})
	}
	return out
}
