package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/ignition"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// machineConfigs stands in for the machine-config operator: it has the MachineConfigs of the
// cluster, and updates nodes to them, one after the other.
type machineConfigs struct {
	c        *cluster
	release  release
	pods     map[string]map[string]string // manifests of the operator's pods, by role and pod
	configs  map[string][]byte            // MachineConfigs, by name
	policy   []byte                       // the MachineConfiguration, with the node disruption policy
	rendered int                          // how often the pools changed
}

// laid holds a node's files of its pool's MachineConfigs.
type laid struct {
	release release
	files   map[string]ignition.File
	units   map[string]ignition.Unit
}

// enabled returns the units that systemd starts, by name: that of the node's address precedes
// that of its name servers.
func (l *laid) enabled() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(l.units)) {
		if u := l.units[name]; u.Enabled != nil && *u.Enabled {
			out = append(out, name)
		}
	}
	return out
}

// runsVipgen reports whether the node gets vipgen's files.
func (l *laid) runsVipgen() bool {
	_, has := l.files[v1alpha1.ClusterConfigPath]
	return has
}

// on returns the files on the node's disk, units among them.
func (l *laid) on() map[string]ignition.File {
	out := maps.Clone(l.files)
	for name, u := range l.units {
		at := host.UnitDir + "/" + name
		out[at] = ignition.File{Path: at, Mode: 0o644, Contents: []byte(u.Contents)}
		for _, d := range u.Dropins {
			at := at + ".d/" + d.Name
			out[at] = ignition.File{Path: at, Mode: 0o644, Contents: []byte(d.Contents)}
		}
	}
	return out
}

// update installs the operator's MachineConfigs of a release.
func (o *machineConfigs) update(r release) {
	o.c.t.Helper()
	o.release = r
	target, err := ignition.ParseTarget(ignition.OpenShift, r.version)
	o.c.must(err)
	for role, manifests := range o.pods {
		of := map[string]string{}
		for pod, text := range manifests {
			of[pod] = strings.ReplaceAll(text, ":release", ":"+r.version)
		}
		bundle := operatorsBundle(r, role, of)
		o.c.must(bundle.Sort())
		name := "00-" + role
		o.configs[name], err = ignition.NewEncoder(target).MachineConfig(bundle, ignition.Metadata{Name: name,
			Annotations: map[string]string{"machineconfiguration.openshift.io/generated-by-controller-version": strings.Repeat("a", 40)}})
		o.c.must(err)
	}
}

// apply is `oc apply` of the MachineConfigs of a directory, by their names.
func (o *machineConfigs) apply(dir string) {
	o.c.t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	o.c.must(err)
	for _, file := range paths {
		data, err := os.ReadFile(file)
		o.c.must(err)
		o.configs[strings.TrimSuffix(filepath.Base(file), ".yaml")] = data
	}
}

// wanted returns the files of nodes of a role: of two files or units of the same name, that of
// the MachineConfig whose name sorts last.
func (o *machineConfigs) wanted(role string) *laid {
	o.c.t.Helper()
	out := &laid{o.release, map[string]ignition.File{}, map[string]ignition.Unit{}}
	for _, name := range slices.Sorted(maps.Keys(o.configs)) {
		docs, err := ignition.Decode(name, o.configs[name])
		o.c.must(err)
		for _, d := range docs {
			if d.Role != role {
				continue
			}
			for _, f := range d.Bundle().Files {
				out.files[f.Path] = f
			}
			for _, u := range d.Units {
				out.units[u.Name] = u
			}
		}
	}
	return out
}

// lay replaces a node's files, manifests last, and returns the changed ones. Directories stay
// (pkg/daemon/update.go, deleteStaleData).
func (n *node) lay(next *laid) (changed []string) {
	c := n.cluster
	c.t.Helper()
	before, after := map[string]ignition.File{}, next.on()
	if n.laid != nil {
		before = n.laid.on()
	}
	for _, file := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[file]; !stays {
			c.must(os.Remove(n.Path(file)))
			changed = append(changed, file)
		}
	}
	names := slices.SortedFunc(maps.Keys(after), func(a, b string) int { return strings.Compare(manifestsLast(a), manifestsLast(b)) })
	for _, file := range names {
		f := after[file]
		if old, had := before[file]; had && old.Mode == f.Mode && bytes.Equal(old.Contents, f.Contents) {
			continue
		}
		c.must(n.WriteMode(file, f.Contents, os.FileMode(f.Mode)))
		changed = append(changed, file)
	}
	n.laid = next
	n.bare = !next.runsVipgen()
	return changed
}

func manifestsLast(name string) string {
	if path.Dir(name) == v1alpha1.ManifestDir {
		return "~" + name
	}
	return name
}

// readLaid reads the pods that the node is to run.
func (n *node) readLaid() {
	c := n.cluster
	c.t.Helper()
	n.pods = map[string]*corev1.Pod{}
	for name, f := range n.laid.files {
		if path.Dir(name) != v1alpha1.ManifestDir {
			continue
		}
		pod := &corev1.Pod{}
		c.must(yaml.Unmarshal(f.Contents, pod))
		n.pods[pod.Name] = pod
		for _, container := range pod.Spec.Containers {
			if c.images[container.Image] == "" {
				c.t.Fatalf("there is no image %s, which pod %s wants", container.Image, pod.Name)
			}
		}
	}
	if !n.bare {
		n.agent = n.pods["mdns-publisher"].Spec.Containers[0].Image
	}
}

// byAgents reports whether the node disruption policy spares a node whose files change a
// reboot.
func (o *machineConfigs) byAgents(changed []string) bool {
	o.c.t.Helper()
	var p struct {
		Spec struct {
			NodeDisruptionPolicy struct {
				Files []struct{ Path string }
			}
		}
	}
	o.c.must(yaml.Unmarshal(o.policy, &p))
	for _, file := range changed {
		if !slices.ContainsFunc(p.Spec.NodeDisruptionPolicy.Files, func(f struct{ Path string }) bool { return f.Path == file }) {
			return false
		}
	}
	return true
}

const operatorsAnnotation = "machineconfiguration.openshift.io/"

// rollOut updates every node to its MachineConfigs, workers first as in vipgen's printed steps,
// and returns the number of reboots.
func (o *machineConfigs) rollOut() (reboots int) {
	c := o.c
	c.t.Helper()
	o.rendered++
	for _, n := range slices.Concat(c.workers, c.masters) {
		to := fmt.Sprintf("rendered-%s-%d", n.role, o.rendered)
		c.kubectl("annotate", "--overwrite", "node", n.Name, operatorsAnnotation+"desiredConfig="+to, operatorsAnnotation+"state=Working")
		if changed := n.lay(o.wanted(n.role)); !o.byAgents(changed) {
			c.log("%s reboots: %d files changed, such as %s", n.Name, len(changed), changed[0])
			reboots++
			n.reboot()
		}
		c.kubectl("annotate", "--overwrite", "node", n.Name, operatorsAnnotation+"currentConfig="+to, operatorsAnnotation+"state=Done")
		c.settle()
	}
	return reboots
}

// reboot shuts the node down, and boots it.
func (n *node) reboot() {
	c := n.cluster
	c.t.Helper()
	n.shutDown()
	n.powerOff()
	c.must(n.Run(nil, "nft", "flush", "ruleset")) // the kernel's rules, which a reboot removes
	c.must(n.PowerOn())
	if n.bare {
		n.renderOperators(n.laid.release)
		n.layManifests()
	}
	n.readLaid()
	n.boot()
	n.awaitPods()
}

// layManifests writes the manifests again, over those that package lab/testbed/reference writes.
func (n *node) layManifests() {
	n.cluster.t.Helper()
	for name, f := range n.laid.files {
		if path.Dir(name) == v1alpha1.ManifestDir {
			n.cluster.must(n.WriteMode(name, f.Contents, os.FileMode(f.Mode)))
		}
	}
}

// shutDown ends the node's processes like systemd: kubelet, and all containers at once, for a
// minute at most.
func (n *node) shutDown() {
	c := n.cluster
	c.t.Helper()
	c.patiently(n.Kubelet.Stop)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	out, err := n.Output(ctx, "ctr", "--namespace", "k8s.io", "tasks", "list", "-q")
	c.must(err)
	var pids []int
	for _, id := range strings.Fields(out) {
		list, err := n.Processes(id)
		if err != nil {
			continue // it has ended
		}
		for _, p := range list {
			pids = append(pids, p.PID)
		}
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGTERM)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if !slices.ContainsFunc(pids, func(pid int) bool { return syscall.Kill(pid, 0) == nil }) {
			return
		}
	}
}

// exportHead is the part of an export that describes the cluster.
//
//go:embed testdata/export.fmt
var exportHead string

// export writes the output of 'oc get' for the cluster, as in vipgen's documentation, and
// returns the file.
func (o *machineConfigs) export() string {
	c := o.c
	c.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, exportHead, o.release.version, domain, apiVIP, ingressVIP, openShiftManaged)
	for role, count := range map[string]int{v1alpha1.RoleMaster: len(c.masters), v1alpha1.RoleWorker: len(c.workers)} {
		fmt.Fprintf(&b, "---\napiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: %s}\nstatus: {machineCount: %d}\n", role, count)
	}
	for _, name := range slices.Sorted(maps.Keys(o.configs)) {
		fmt.Fprintf(&b, "---\n%s\n", o.configs[name])
	}
	if o.policy != nil {
		fmt.Fprintf(&b, "---\n%s\n", o.policy)
	}
	fmt.Fprintf(&b, "---\n%s", c.kubectl("get", "nodes", "-o", "yaml"))
	file := filepath.Join(c.dir, fmt.Sprintf("export-%d.yaml", o.rendered))
	c.must(errors.Join(os.WriteFile(file, []byte(b.String()), 0o600)))
	return file
}
