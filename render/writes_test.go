package render

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/assets"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/internal/testkit"
)

// shared are the folders that a pod or unit may write to and that contain files of
// MachineConfigs.
var shared = []string{"/etc", "/etc/keepalived", "/etc/systemd/system"}

// TestHardCase57RunTimeWrites: the files that a node's pods and units write at run time are not
// files of MachineConfigs, the operator's or vipgen's, in every kind of cluster and release.
func TestHardCase57RunTimeWrites(t *testing.T) {
	writable, holds := map[string]bool{}, map[string]bool{}
	for _, s := range setups() {
		for _, version := range ignition.SupportedOpenShift() {
			if !assets.AtLeast(version, s.since()) {
				continue
			}
			for _, b := range s.bundles(t, version) {
				paths, dirs := laid(b), writableBy(t, b)
				for _, dir := range dirs {
					writable[dir] = true
				}
				for _, p := range paths {
					if testkit.WrittenAtRunTime(p) {
						t.Errorf("%s, %s, pool %s: %s is laid down, and written while the node runs", s.name, version, b.Role, p)
					}
					for _, dir := range dirs {
						if strings.HasPrefix(p, dir+"/") || p == dir {
							holds[dir] = true
						}
					}
				}
			}
		}
	}
	for _, e := range assets.Contract {
		if testkit.WrittenAtRunTime(e.Name) {
			t.Errorf("%s is the operator's, and written while the node runs", e.Name)
		}
	}
	testkit.Equal(t, shared, slices.Sorted(maps.Keys(holds)))
	for dir := range writable {
		if !slices.ContainsFunc(testkit.RunTimeWrites(), func(w string) bool { return strings.HasPrefix(w, dir+"/") }) {
			t.Errorf("%s may be written, and nothing is known to be", dir)
		}
	}
	for _, w := range testkit.RunTimeWrites() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(writable)), func(dir string) bool { return strings.HasPrefix(w, dir+"/") }) {
			t.Errorf("%s is written, and nothing may write it", w)
		}
	}
}

// laid returns the paths of a bundle's files and units.
func laid(b ignition.Bundle) (out []string) {
	const units = "/etc/systemd/system/"
	for _, f := range b.Files {
		out = append(out, f.Path)
	}
	for _, u := range b.Units {
		out = append(out, units+u.Name)
		for _, d := range u.Dropins {
			out = append(out, units+u.Name+".d/"+d.Name)
		}
	}
	return out
}

// volume matches a volume that a unit mounts into its container, by the path on the node.
var volume = regexp.MustCompile(`--volume (\S+):/host\S*?(:ro)?(?:\s|$)`)

// writableByPod caches the paths of pods by their text: most releases have the same.
var writableByPod = map[string][]string{}

// writableBy returns the paths on the node's disk that its pods and units may write to.
func writableBy(t *testing.T, b ignition.Bundle) (out []string) {
	t.Helper()
	add := func(p string) {
		if !slices.ContainsFunc([]string{"/run", "/proc"}, func(memory string) bool { return p == memory || strings.HasPrefix(p, memory+"/") }) {
			out = append(out, p)
		}
	}
	for _, f := range b.Files {
		if path.Dir(f.Path) != "/etc/kubernetes/manifests" {
			continue
		}
		if known, ok := writableByPod[string(f.Contents)]; ok {
			out = append(out, known...)
			continue
		}
		before := len(out)
		var pod corev1.Pod
		testkit.Must(t, yaml.UnmarshalStrict(f.Contents, &pod))
		host := map[string]string{}
		for _, v := range pod.Spec.Volumes {
			if v.HostPath != nil {
				host[v.Name] = v.HostPath.Path
			}
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			for _, m := range c.VolumeMounts {
				if p, there := host[m.Name]; there && !m.ReadOnly {
					add(p)
				}
			}
		}
		writableByPod[string(f.Contents)] = out[before:]
	}
	for _, u := range b.Units {
		found := volume.FindAllStringSubmatch(u.Contents, -1)
		if len(found) != strings.Count(u.Contents, "--volume") {
			t.Fatalf("%s: %d volumes are read of\n%s", u.Name, len(found), u.Contents)
		}
		for _, v := range found {
			if v[2] == "" {
				add(v[1])
			}
		}
	}
	return out
}
