package lab

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	kubepod "github.com/vipgen/vipgen/lab/testbed/pod"
)

// tree holds a version's files for nodes of a pool: contents, by path.
type tree map[string]string

// renders returns the files that a vipgen renders from the demo for the control plane.
// outputFlag is that version's flag for the directory.
func renders(t *testing.T, vipgen, outputFlag, config string, flags ...string) tree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"install-config.yaml": demo, "vipgen.yaml": config} {
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	command := exec.CommandContext(t.Context(), vipgen, append([]string{"render", "install-config.yaml", "--format", "files", outputFlag, "rendered"}, flags...)...)
	command.Dir = dir
	testkit.Run(testkit.In(t, command.Args), command)
	out, below := tree{}, filepath.Join(dir, "rendered", "files", v1alpha1.RoleMaster)
	err := filepath.WalkDir(below, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(at)
		out[strings.TrimPrefix(at, below)] = string(data)
		return err
	})
	testkit.Must(t, err)
	return out
}

// pods returns the names of the pods with manifests in the tree.
func (f tree) pods() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if path.Dir(name) == v1alpha1.ManifestDir {
			names = append(names, strings.TrimSuffix(path.Base(name), ".yaml"))
		}
	}
	return names
}

// exchanged is a node whose files of vipgen are replaced at run time.
type exchanged struct {
	*node
	files tree
}

// exchangedNodes returns the nodes of a cluster with the files of their pools.
func (c *cluster) exchangedNodes(files map[string]tree) (out []*exchanged) {
	for _, n := range c.nodes {
		out = append(out, &exchanged{n, files[n.Role]})
	}
	return out
}

// inPool returns the nodes of a pool.
func inPool(list []*exchanged, role string) []*exchanged {
	return slices.DeleteFunc(slices.Clone(list), func(x *exchanged) bool { return x.Role != role })
}

// give replaces the files of a node, manifests last, so that pods start with everything in
// place: only the named files, if any are. Obsolete files are removed afterwards, as by the
// machine config daemon. Kubelet notices changes of manifests, and replaces these pods.
func (x *exchanged) give(next tree, only ...string) {
	x.cluster.t.Helper()
	if len(only) > 0 {
		changed := maps.Clone(x.files)
		for _, name := range only {
			changed[name] = next[name]
		}
		next = changed
	}
	names := slices.SortedFunc(maps.Keys(next), func(a, b string) int {
		return strings.Compare(manifestsLast(a), manifestsLast(b))
	})
	for _, name := range names {
		if x.files[name] != next[name] {
			x.write(name, next[name])
		}
	}
	for name := range x.files {
		if _, stays := next[name]; !stays {
			x.cluster.must(os.Remove(x.Path(name)))
		}
	}
	x.files = next
}

func manifestsLast(name string) string {
	if path.Dir(name) == v1alpha1.ManifestDir {
		return "~" + name
	}
	return name
}

// settles waits until the node's pods match its manifests, and all nodes are equally good
// holders of the API VIPs.
func (x *exchanged) settles() {
	x.cluster.t.Helper()
	x.runsManifests()
	awaitWell(x.cluster.t, x.cluster.Cluster)
}

// runsManifests waits until the node's pods match its manifests.
func (x *exchanged) runsManifests() {
	x.cluster.t.Helper()
	for _, name := range x.files.pods() {
		want := []byte(x.files[v1alpha1.ManifestDir+"/"+name+".yaml"])
		testkit.Await(x.cluster.t, "pod "+name+" of the new manifest on "+x.Name, func() bool {
			p, err := x.Kubelet.Pod(name)
			return err == nil && p.RunsFrom(want) && !slices.ContainsFunc(p.Containers, func(c *kubepod.Container) bool { return !c.Status().Running })
		})
	}
	testkit.Await(x.cluster.t, "no other pods on "+x.Name, func() bool { return len(x.Kubelet.Pods()) == len(x.files.pods()) })
}

// reboots reboots the node like its machine config daemon: its API server and its pods get
// SIGTERM, and it is powered off when its VIPs have left. It returns when the pods run again.
func (x *exchanged) reboots() {
	x.cluster.t.Helper()
	ctx, cancel := x.patient()
	defer cancel()
	var ending sync.WaitGroup
	if x.API != nil {
		ending.Go(func() { testkit.Check(x.cluster.t, x.API.Stop(ctx)) })
	}
	terminate(x.cluster.t, x.Node, false)
	testkit.Await(x.cluster.t, "the VIPs to leave "+x.Name, func() bool {
		return !slices.ContainsFunc(x.cluster.vips, x.holds)
	})
	ending.Wait()
	x.powerOff()
	x.powerOn()
	x.runsManifests()
}

// versionYAML is a vipgen.yaml that names images by tag, without fields that the previous
// version does not know.
func versionYAML(agent, keepalived, haproxy string) string {
	return strings.NewReplacer("  apiServer:\n    local: AllNodes\n", "", "agent:1", "agent:"+agent, "keepalived:1", "keepalived:"+keepalived, "haproxy:1", "haproxy:"+haproxy).Replace(vipgenYAML)
}
