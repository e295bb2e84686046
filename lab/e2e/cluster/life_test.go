package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/image"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/upgrade"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// Releases of the cluster. The previous version of vipgen cannot start keepalived 2.3, so that
// the first update changes HAProxy alone.
var (
	firstRelease = release{"4.18", daemon.Installed, daemon.Installed}
	nextRelease  = release{"4.19", daemon.Installed, daemon.New}
	lastRelease  = release{"4.20", daemon.New, daemon.New}
)

// Images of vipgen's agent: of the previous version, and of this one.
const (
	agentBefore = "registry.example.com/agent:before"
	agentNow    = "registry.example.com/agent:now"
)

// Bounds on the client's time without an answer: while the holder of the VIP reboots, with
// either settings, and in migrations (docs/upgrade.md).
const (
	classicHandover = 4 * time.Second
	fastHandover    = 160 * time.Millisecond
	classicToFast   = 1120 * time.Millisecond
	fastToClassic   = 3040 * time.Millisecond
)

// The error of the measurement on a quiet machine, and a bound for any load. A kernel keeps a
// neighbour that it has just confirmed for a second, regardless of announcements
// (net.ipv4.neigh.*.locktime).
const (
	measuring = 150 * time.Millisecond
	neighbour = time.Second
	anyLoad   = time.Minute
)

// TestLife takes a cluster with OpenShift's own keepalived through its whole life with vipgen:
// adopted, migrated to fast, OpenShift updated, vipgen upgraded, migrated back, removed, under
// the load of one client. Afterwards the nodes have their original files.
func TestLife(t *testing.T) {
	testkit.Only(t, "e2e-life")
	old := upgrade.Build(t)
	l := newLife(t, old)
	defer l.end()
	before := l.files()
	l.step("OpenShift's own keepalived", 0, func() int { return 0 })
	l.step("adopt", classicHandover, l.adopt)
	l.step("migrate to fast", classicToFast, l.migrateToFast)
	l.step("update of OpenShift to "+nextRelease.version, fastHandover, func() int { return l.updateOpenShift(nextRelease, l.renderBefore) })
	l.step("upgrade of vipgen", fastHandover, l.upgradeVipgen)
	l.step("update of OpenShift to "+lastRelease.version, fastHandover, func() int { return l.updateOpenShift(lastRelease, l.renderNow) })
	l.step("migrate back", fastToClassic, l.migrateBack)
	l.step("remove", classicHandover, l.remove)
	l.compare(before, l.files())
}

// life is a cluster with the steps of its life.
type life struct {
	*cluster
	operator *machineConfigs
	old      upgrade.Programs
	adopted  string // the directory that vipgen adopt wrote

	probe *probe.Probe
	watch *watch.Watch
	steps []*lifeStep
}

// lifeStep lasts until the next one.
type lifeStep struct {
	name    string
	outage  time.Duration // promised upper bound
	reboots int
	from    time.Duration
	machine *testkit.Stopwatch
}

// newLife starts a cluster whose nodes run OpenShift's own keepalived, HAProxy and CoreDNS,
// without a bootstrap host.
func newLife(t *testing.T, old upgrade.Programs) *life {
	t.Helper()
	c := newCluster(t, openShiftManaged)
	c.agents = map[string]string{agentBefore: old.Agent}
	for name, program := range map[string]string{agentBefore: old.Agent, agentNow: testkit.Agent(t)} {
		i, err := image.Program(name, program, rig.Made)
		c.images[name] = rig.Archive(t, i, err)
	}
	for _, r := range []release{firstRelease, nextRelease, lastRelease} {
		c.makeImages(r)
	}
	l := &life{cluster: c, old: old, adopted: filepath.Join(c.dir, "adopted"),
		operator: &machineConfigs{c: c, configs: map[string][]byte{}, pods: map[string]map[string]string{}}}
	none := func(*node) {}
	for i := range 3 {
		c.masters = append(c.masters, c.addBy(none, masterName(i), v1alpha1.RoleMaster, masterAddr(i).String()))
	}
	for i := range *workers {
		c.workers = append(c.workers, c.addBy(none, fmt.Sprintf("worker-%d", i), v1alpha1.RoleWorker, fmt.Sprintf("192.0.2.3%d", i)))
	}
	l.install()
	l.bringUp()
	l.observe()
	return l
}

// install writes the operator's files to all nodes.
func (l *life) install() {
	l.t.Helper()
	marked := release{version: "release"}
	for _, n := range l.nodes() {
		l.operator.pods[n.role] = n.operatorsManifests(marked)
	}
	if l.operator.pods[v1alpha1.RoleWorker] == nil { // the pool exists without nodes, too
		l.operator.pods[v1alpha1.RoleWorker] = map[string]string{"keepalived": l.operator.pods[v1alpha1.RoleMaster]["keepalived"]}
	}
	l.operator.update(firstRelease)
	for _, n := range l.nodes() {
		n.renderOperators(firstRelease)
		n.lay(l.operator.wanted(n.role))
		n.layManifests()
		n.readLaid()
	}
}

// bringUp starts the control plane, all of it at once, and has nodes join.
func (l *life) bringUp() {
	l.t.Helper()
	for _, n := range l.masters {
		n.startEtcd("new", l.masters)
		n.startAPI(l.masters)
		n.startControllers()
	}
	for _, n := range l.nodes() {
		n.boot()
	}
	first := l.masters[0]
	l.until("an API server", func() bool { return l.serves(first) })
	l.prepareAt(first.addr)
	l.log("OpenShift's own keepalived and HAProxy come up")
	l.holder(l.vip)
	for _, n := range l.nodes() {
		l.until(n.Name+" to register", func() bool {
			return slices.Contains(strings.Fields(l.kubectl("get", "nodes", "-o", "name")), "node/"+n.Name)
		})
		l.label(n)
		l.kubectl("annotate", "node", n.Name, operatorsAnnotation+"currentConfig=rendered-0", operatorsAnnotation+"desiredConfig=rendered-0", operatorsAnnotation+"state=Done")
	}
	l.startRouters()
	l.settle()
}

// observe starts the client, and the watch of the API VIP's holders.
func (l *life) observe() {
	l.t.Helper()
	since := time.Now()
	var err error
	l.probe, err = probe.Start(probe.Config{Since: since, Target: probe.Target{URL: "https://" + l.vip.String() + ":6443/livez", Dial: l.client.DialContext}})
	l.must(err)
	l.t.Cleanup(func() { l.probe.End() })
	var nodes []*netns.Node
	for _, n := range l.nodes() {
		nodes = append(nodes, n.Node.Machine.Host.Node)
	}
	l.watch, err = watch.Start(watch.Config{Since: since, Network: l.network, Nodes: nodes, VIPs: l.vips()})
	l.must(err)
	l.t.Cleanup(func() { l.watch.End() })
	l.answered(100)
}

// vips returns the VIPs that have a holder.
func (l *life) vips() []netip.Addr {
	if l.routed {
		return []netip.Addr{l.vip, ingressVIP}
	}
	return []netip.Addr{l.vip}
}

// step runs one step, and returns when the cluster is healthy and the client has had answers
// for three seconds. outage bounds the client's time without an answer; do returns the number
// of rebooted nodes.
func (l *life) step(name string, outage time.Duration, do func() int) {
	l.t.Helper()
	l.log("%s", name)
	s := &lifeStep{name: name, outage: outage, from: l.probe.Now(), machine: testkit.StartStopwatch()}
	l.t.Cleanup(func() { s.machine.End() })
	l.steps = append(l.steps, s)
	began := time.Now()
	s.reboots = do()
	l.settle()
	l.answered(300)
	s.machine.End()
	l.log("%s: done after %s", name, short(time.Since(began)))
}

// either is an exit code for run: done, or findings.
const either = -1

// run runs a vipgen in the adopted directory, which must exit with a code, and returns its
// output.
func (l *life) run(code int, vipgen string, args ...string) string {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), vipgen, args...)
	cmd.Dir = l.dir
	if _, err := os.Stat(l.adopted); err == nil {
		cmd.Dir = l.adopted
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	err := cmd.Run()
	got := 255
	if cmd.ProcessState != nil {
		got = cmd.ProcessState.ExitCode()
	}
	if got != code && (code != either || got > 1) {
		l.t.Fatalf("vipgen %s: %v, want exit code %d\n%s%s", strings.Join(args, " "), err, code, &out, &complaint)
	}
	l.log("$ vipgen %s\n%s%s", strings.Join(args, " "), &out, &complaint)
	return out.String()
}

// edit changes spec of the adopted vipgen.yaml.
func (l *life) edit(change func(spec map[string]any)) {
	l.t.Helper()
	file := filepath.Join(l.adopted, "vipgen.yaml")
	data, err := os.ReadFile(file)
	l.must(err)
	var config map[string]any
	l.must(yaml.Unmarshal(data, &config))
	change(config["spec"].(map[string]any))
	data, err = yaml.Marshal(config)
	l.must(errors.Join(err, os.WriteFile(file, data, 0o600)))
}

// vipgen is the program of this version.
func (l *life) vipgen(code int, args ...string) string {
	l.t.Helper()
	return l.run(code, testkit.Vipgen(l.t), args...)
}

// renderBefore renders the adopted input with the previous version, and returns the directory.
// That version rejects the field with the release of the images.
func (l *life) renderBefore() string {
	l.t.Helper()
	in, out := filepath.Join(l.dir, "before"), filepath.Join(l.dir, "rendered-before")
	l.must(os.MkdirAll(in, 0o755))
	for _, name := range []string{"install-config.yaml", "vipgen.yaml"} {
		data, err := os.ReadFile(filepath.Join(l.adopted, name))
		l.must(err)
		if name == "vipgen.yaml" {
			var config map[string]any
			l.must(yaml.Unmarshal(data, &config))
			delete(config["spec"].(map[string]any)["images"].(map[string]any), "release")
			data, err = yaml.Marshal(config)
		}
		l.must(errors.Join(err, os.WriteFile(filepath.Join(in, name), data, 0o600)))
	}
	l.run(0, l.old.Vipgen, "render", filepath.Join(in, "install-config.yaml"), "-o", out)
	return out
}

// applyManifests is 'oc apply -f manifests', except for the node disruption policy, which the
// operator's stand-in applies.
func (l *life) applyManifests(dir string) {
	l.t.Helper()
	for _, name := range []string{"clusterrole", "clusterrolebinding", "role", "rolebinding"} {
		l.kubectl("apply", "-f", filepath.Join(dir, name+".yaml"))
	}
	var err error
	l.operator.policy, err = os.ReadFile(filepath.Join(dir, "node-disruption-policy.yaml"))
	l.must(err)
}

// adopt plans, writes the directory and follows STEPS.md, with the files of the previous
// version.
func (l *life) adopt() int {
	l.t.Helper()
	l.vipgen(0, "adopt", l.operator.export(), "--dir", l.adopted, "--allow-default-image")
	l.vipgen(0, "adopt", l.operator.export(), "--dir", ".", "--check")
	l.edit(func(spec map[string]any) { spec["images"].(map[string]any)["agent"] = agentBefore })
	rendered := l.renderBefore()
	l.applyManifests(rendered + "/manifests")
	l.operator.apply(rendered + "/machineconfigs")
	reboots := l.operator.rollOut()
	l.ways(v1alpha1.ClassicSettings(v1alpha1.ModeUnicast))
	return reboots
}

// migrateToFast removes the profile from vipgen.yaml.
func (l *life) migrateToFast() int {
	l.t.Helper()
	l.edit(func(spec map[string]any) { delete(spec, "vrrp") })
	l.operator.apply(l.renderBefore() + "/machineconfigs")
	reboots := l.operator.rollOut()
	l.ways(v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings())
	return reboots
}

// updateOpenShift updates the nodes to another release, with its images for vipgen's pods, as
// rendered by a version of vipgen.
func (l *life) updateOpenShift(to release, render func() string) int {
	l.t.Helper()
	l.vipgen(0, "adopt", l.operator.export(), "--dir", ".", "--check")
	l.vipgen(either, "adopt", l.operator.export(), "--dir", ".", "--check", "--to", to.version) // it may change nothing
	l.operator.update(to)
	l.edit(func(spec map[string]any) {
		spec["openshiftVersion"] = to.version
		images := spec["images"].(map[string]any)
		for _, name := range []string{"keepalived", "haproxy", "coredns"} {
			images[name] = to.image(name)
		}
		images["release"] = to.version
	})
	l.operator.apply(render() + "/machineconfigs")
	reboots := l.operator.rollOut()
	later := l.operator.export()
	l.vipgen(1, "adopt", later, "--dir", ".", "--check")
	l.vipgen(0, "adopt", later, "--dir", ".", "--update")
	l.vipgen(0, "adopt", later, "--dir", ".", "--check")
	return reboots
}

// upgradeVipgen renders with this version, and its agents.
func (l *life) upgradeVipgen() int {
	l.t.Helper()
	l.edit(func(spec map[string]any) { spec["images"].(map[string]any)["agent"] = agentNow })
	rendered := l.renderNow()
	l.applyManifests(rendered + "/manifests")
	l.operator.apply(rendered + "/machineconfigs")
	return l.operator.rollOut()
}

// renderNow renders the adopted input with this version, and returns the directory.
func (l *life) renderNow() string {
	l.t.Helper()
	l.vipgen(0, "render", "install-config.yaml", "--dir", "rendered")
	l.vipgen(1, "diff", l.operator.export(), "rendered")
	return l.adopted + "/rendered"
}

// migrateBack takes the steps that vipgen remove prints before MachineConfigs may be deleted.
func (l *life) migrateBack() int {
	l.t.Helper()
	l.vipgen(1, "remove", l.operator.export())
	l.edit(func(spec map[string]any) { spec["vrrp"] = map[string]any{"profile": "classic", "mode": "unicast"} })
	l.operator.apply(l.renderNow() + "/machineconfigs")
	l.vipgen(1, "remove", l.operator.export())
	reboots := l.operator.rollOut()
	l.ways(v1alpha1.ClassicSettings(v1alpha1.ModeUnicast))
	return reboots
}

// removal is the output of vipgen remove.
type removal struct {
	Steps []struct {
		Name, State string
		Findings    []string
		Do          []string
	}
}

// removal runs vipgen remove.
func (l *life) removal() (r removal) {
	l.t.Helper()
	l.must(yaml.Unmarshal([]byte(l.vipgen(0, "remove", l.operator.export(), "-o", "json")), &r))
	return r
}

// remove deletes vipgen's MachineConfigs, and cleans up by the printed commands.
func (l *life) remove() int {
	l.t.Helper()
	const isDelete, isRest = 3, 4 // of the five steps
	for _, command := range l.removal().Steps[isDelete].Do {
		if name, ok := strings.CutPrefix(command, "oc delete machineconfig "); ok {
			delete(l.operator.configs, name)
		}
	}
	reboots := l.operator.rollOut()
	for _, command := range l.removal().Steps[isRest].Do {
		l.cleanUp(command)
	}
	for _, s := range l.removal().Steps {
		testkit.Equal(testkit.In(l.t, s.Name, s.Findings), "done", s.State)
	}
	return reboots
}

// cleanUp runs a command of the last step.
func (l *life) cleanUp(command string) {
	l.t.Helper()
	switch {
	case strings.HasPrefix(command, "oc "):
		l.kubectl(strings.Fields(command)[1:]...)
	case strings.HasPrefix(command, "on each node: "):
		for _, n := range l.nodes() {
			_, err := n.Output(l.t.Context(), "sh", "-c", strings.TrimPrefix(command, "on each node: "))
			l.must(err)
		}
	case strings.HasPrefix(command, "take vipgen's files out of the node disruption policy"):
		l.operator.policy = nil
	case strings.HasPrefix(command, "where spec.monitoring was on"): // it was not
	default:
		l.t.Errorf("unknown command %q", command)
	}
}

// states are not configuration: daemons and kubelet write there at run time.
var states = []string{"proc", "sys", "dev", "tmp", "var/lib/containerd", "var/lib/kubelet", "var/lib/etcd", "var/log", "var/tmp", "run/containerd", "opt"}

// files returns the files of all nodes: for each node and path, the mode and a digest.
func (l *life) files() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	for _, n := range l.nodes() {
		root := n.Path("/")
		l.must(filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || name == root {
				return err
			}
			rest := strings.TrimPrefix(name, root+"/")
			if d.IsDir() && slices.Contains(states, rest) {
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := info.Mode().String()
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				text += fmt.Sprintf(" %x", sha256.Sum256(data))
			}
			out[n.Name+":/"+rest] = text
			return nil
		}))
	}
	return out
}

// compare compares the files of all nodes, except for those that the update of OpenShift
// changed.
func (l *life) compare(before, after map[string]string) {
	l.t.Helper()
	updated := map[string]bool{}
	for _, n := range l.nodes() {
		was := &machineConfigs{c: l.cluster, pods: l.operator.pods, configs: map[string][]byte{}}
		was.update(firstRelease)
		old, now := was.wanted(n.role).on(), n.laid.on()
		for _, name := range slices.Concat(slices.Collect(maps.Keys(old)), slices.Collect(maps.Keys(now))) {
			if !bytes.Equal(old[name].Contents, now[name].Contents) || old[name].Mode != now[name].Mode {
				updated[n.Name+":"+name] = true
			}
		}
	}
	same := 0
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch {
		case updated[name]:
		case after[name] == "":
			l.t.Errorf("%s is gone", name)
		case after[name] != before[name]:
			l.t.Errorf("%s: %s before, %s after", name, before[name], after[name])
		default:
			same++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" && !updated[name] {
			l.t.Errorf("%s is left", name)
		}
	}
	for _, n := range l.nodes() {
		out, err := n.Output(l.t.Context(), "nft", "list", "tables")
		l.must(err)
		testkit.Lacks(testkit.In(l.t, n.Name), out, "vipgen")
	}
	l.log("%d files and directories are the same, %d changed with the release", same, len(updated))
}

// answered waits until the client has had a number of answers in a row.
func (l *life) answered(n int) {
	l.t.Helper()
	l.patiently(func(ctx context.Context) error { return l.probe.Await(ctx, n) })
}

// end prints the client's results for each step.
func (l *life) end() {
	l.t.Helper()
	seen := l.probe.End()
	timeline, err := l.watch.End()
	l.must(err)
	table := "| step | reboots | requests | lost | longest time without an answer | split brain | who held the API VIP | machine late by |\n|---|---|---|---|---|---|---|---|\n"
	for i, s := range l.steps {
		to := time.Duration(math.MaxInt64)
		if i+1 < len(l.steps) {
			to = l.steps[i+1].from
		}
		part := probe.Result{Requests: slices.DeleteFunc(slices.Clone(seen.Requests), func(q probe.Request) bool { return q.Sent < s.from || q.Sent >= to })}
		var during watch.Timeline
		for _, span := range timeline {
			if span.From < to && span.To > s.from {
				span.From, span.To = max(span.From, s.from), min(span.To, to)
				during = append(during, span)
			}
		}
		two, long := "-", during.SplitBrain(crossing)
		if long > 0 {
			two = short(long)
		}
		late := s.machine.End()
		testkit.Promise(l.t, s.name+", no answer", part.Outage(), s.outage+neighbour+measuring, s.outage+anyLoad, late)
		testkit.Promise(l.t, s.name+", split brain", long, measuring, anyLoad, late)
		table += fmt.Sprintf("| %s | %d | %d | %d | %s | %s | %s | %s |\n", s.name, s.reboots, len(part.Requests), part.Lost(), short(part.Outage()), two,
			strings.Join(during.Holders(l.vip, crossing), " → "), short(late))
	}
	l.log("what the client saw:\n%s", table)
}
