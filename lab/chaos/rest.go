package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
)

// restEvery is the poll interval while waiting for rest; the cluster is at rest after several polls
// in a row without a deviation.
const (
	restEvery = 300 * time.Millisecond
	restTimes = 3
)

// normal is the state of a node at rest.
type normal struct {
	processes []string       // names, sorted, without HAProxy's older workers
	proxies   int            // HAProxy's workers
	files     map[string]int // open files of agents, the maximum by name
	tables    string         // of nftables
	names     map[string]bool
}

// lasts is the minimum age of processes that count: longer than a liveness probe runs.
const lasts = 6 * time.Second

// moreProxies is the maximum number of HAProxy workers from before reloads: a client may keep a
// connection to each, at most for 15 minutes (hard-stop-after in haproxy.cfg).
const moreProxies = 8

// moreFiles is the number of files that an agent may have open beyond the first count: connections
// to API servers vary.
const moreFiles = 16

// rest waits until the cluster is in its first state again, and reports whether it is. A deviation
// that outlasts the time to recover is a violation. The first call records the state.
func (r *run) rest(ctx context.Context) bool {
	began := r.record.now()
	first := r.normal == nil
	good, said := 0, ""
	for {
		rule, err := r.checkRest()
		if err != nil && err.Error() != said {
			said = err.Error()
			r.log("not at rest yet: %s", said)
		}
		if good++; err != nil {
			good = 0
		}
		if err != nil && first { // passing processes, such as a liveness probe
			r.normal = nil
		}
		if good == restTimes {
			r.log("at rest")
			return true
		}
		allowed := r.bounds.Return + r.bounds.Apply + r.afterNetwork() + r.bounds.Slack + r.record.late(began)
		if now := r.record.now(); now-began > allowed {
			r.violate(Violation{Rule: rule, From: began, To: now, Allowed: allowed, Happened: fmt.Sprintf("the cluster does not come to rest: %v", err)})
			return false
		}
		if !sleep(ctx, restEvery) {
			return false
		}
	}
}

// checkRest returns a deviation from the state at rest.
func (r *run) checkRest() (rule Rule, err error) {
	if err := r.checkServing(); err != nil {
		r.served = 0
		return noRest, err
	}
	if r.normal == nil {
		if r.served == 0 {
			r.served = r.record.now()
		}
		if r.record.now()-r.served < lasts+second { // until processes that just started count
			return noRest, errors.New("it has just started")
		}
		r.normal, err = r.survey()
		return noRest, err
	}
	for i, n := range r.cluster.Nodes() {
		now, err := r.surveyNode(n)
		if err == nil {
			err = now.compare(&r.normal[i])
		}
		if err == nil {
			err = r.checkAddresses(n)
		}
		if err != nil {
			return leak, fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return "", nil
}

// checkServing returns an error unless every VIP has a holder, and every node the priority of a
// healthy one.
func (r *run) checkServing() error {
	if r.routed != nil {
		return errors.Join(r.checkAnnounced(), r.checkPods())
	}
	for _, g := range r.cluster.Spec().Groups {
		for _, vip := range g.VIPs {
			holders, err := r.cluster.Holders(vip)
			if err != nil || len(holders) != 1 {
				return errors.Join(err, fmt.Errorf("%d nodes hold %v", len(holders), vip))
			}
		}
		for _, n := range r.cluster.Nodes() {
			if err := r.checkHealthy(n, &g); err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
		}
	}
	return r.checkPods()
}

// checkPods returns an error unless all containers run.
func (r *run) checkPods() error {
	for _, n := range r.cluster.Nodes() {
		for _, p := range n.Kubelet.Pods() {
			for _, c := range p.Containers {
				if !c.Status().Running {
					return fmt.Errorf("%s: container %s of pod %s does not run", n.Name, c.Name, p.Name)
				}
			}
		}
	}
	return nil
}

// serves reports whether a node serves the VIPs of a group at rest.
func (r *run) serves(n *lab.Node, g *v1alpha1.Group) bool {
	return r.cluster.Spec().Hosts(g, n.Role, nil) && (g.Role != v1alpha1.GroupIngress || n.Router(g.Controller) != nil)
}

// checkHealthy returns an error unless a node has the maximum priority for a group.
func (r *run) checkHealthy(n *lab.Node, g *v1alpha1.Group) error {
	if !r.serves(n, g) {
		return nil
	}
	s, err := lab.Published[state.Keepalived](n)
	if err != nil || s == nil {
		return errors.Join(err, errors.New("its keepalived job publishes no state"))
	}
	full := vrrp.FullPriority(g, n.Role)
	for _, vip := range g.VIPs {
		i := slices.IndexFunc(s.Instances, func(i state.Instance) bool { return i.VIP == vip })
		if i < 0 {
			return fmt.Errorf("it takes no part for %v: %v", vip, s.LeftOut)
		}
		if s.Instances[i].Fault || s.Instances[i].Priority != full {
			return fmt.Errorf("its priority for %v is %d of %d", vip, s.Instances[i].Priority, full)
		}
	}
	return nil
}

// checkAddresses returns an error if a node has other addresses than its own and the VIPs of the
// cluster.
func (r *run) checkAddresses(n *lab.Node) error {
	have, err := n.Addresses()
	if err != nil {
		return err
	}
	own := n.OwnAddresses()
	for _, a := range have {
		vip := a.IsSingleIP() && slices.ContainsFunc(r.cluster.Spec().Groups, func(g v1alpha1.Group) bool { return slices.Contains(g.VIPs, a.Addr()) })
		if !vip && !slices.Contains(own, a) {
			return fmt.Errorf("it has the address %v", a)
		}
	}
	for _, a := range own {
		if !slices.Contains(have, a) {
			return fmt.Errorf("it has no address %v", a)
		}
	}
	return nil
}

// survey returns the current state of all nodes.
func (r *run) survey() (out []normal, err error) {
	for _, n := range r.cluster.Nodes() {
		now, err := r.surveyNode(n)
		if err != nil {
			return nil, err
		}
		out = append(out, *now)
	}
	return out, nil
}

func (r *run) surveyNode(n *lab.Node) (*normal, error) {
	now := &normal{files: map[string]int{}, names: map[string]bool{}}
	for _, p := range processesOf(n.Init()) {
		if p.age < lasts {
			continue
		}
		name := p.name
		if p.zombie {
			name += " (zombie)"
		}
		if name == "haproxy" && slices.Contains(now.processes, name) {
			// Workers from before a reload stay until their last connection ends.
			if now.proxies++; now.proxies > 1 {
				continue
			}
		}
		now.processes = append(now.processes, name)
		if name == agent || name == speaker {
			now.files[name] = max(now.files[name], p.files)
		}
	}
	slices.Sort(now.processes)
	out, err := n.Command(context.Background(), "nft", "list", "tables").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("nft list tables: %w: %s", err, out)
	}
	// nft lists tables by age: of two agents, either may restore its own first.
	now.tables = strings.Join(slices.Sorted(strings.Lines(string(out))), "")
	places := append(slices.Clone(written), v1alpha1.TrackDir, "/etc", "/tmp")
	for _, dir := range places {
		entries, err := os.ReadDir(n.Path(dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			now.names[filepath.Join(dir, e.Name())] = true
		}
	}
	containers, _ := os.ReadDir(filepath.Join(n.Dir(), "containers"))
	now.names[fmt.Sprintf("%d containers", len(containers))] = true
	return now, nil
}

// compare returns an error for the first difference to the first state.
func (now *normal) compare(first *normal) error {
	if !slices.Equal(now.processes, first.processes) {
		return fmt.Errorf("it runs %v, and ran %v at first", counted(now.processes), counted(first.processes))
	}
	if now.proxies > 1+moreProxies {
		return fmt.Errorf("it runs %d workers of HAProxy", now.proxies)
	}
	if now.tables != first.tables {
		return fmt.Errorf("it has the tables %q, and had %q at first", now.tables, first.tables)
	}
	for name, n := range now.files {
		if n > first.files[name]+moreFiles {
			return fmt.Errorf("%s has %d files open, and had %d at first", name, n, first.files[name])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now.names)) {
		if !first.names[path] && !expected(path) {
			return fmt.Errorf("new file %s", path)
		}
	}
	return nil
}

// expected reports whether a file may appear later than the others: state that the agent keeps over
// a restart, the one temporary file of each path, which a killed agent leaves for the next one to
// reuse, and the track files of a group that the node could hold for a while, by its labels, which
// stay until the agent restarts.
func expected(path string) bool {
	base := filepath.Base(path)
	return filepath.Dir(path) == v1alpha1.TrackDir || strings.HasPrefix(base, ".vipgen-") || strings.HasSuffix(base, ".vipgen-new")
}

// counted returns a list with each name once, with its number.
func counted(sorted []string) string {
	var out []string
	for i := 0; i < len(sorted); {
		n := i
		for n < len(sorted) && sorted[n] == sorted[i] {
			n++
		}
		out = append(out, fmt.Sprintf("%d %s", n-i, sorted[i]))
		i = n
	}
	return strings.Join(out, ", ")
}
