package keepalived

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/agent/nodes"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/atomicfile"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// settings are the VRRP settings of the node: what a migration.Machine takes in and gives
// out. All of it is of the loop's goroutine.
type settings struct {
	machine migration.Machine
	leftOut bool // by the mode file
	timer   *time.Timer

	checked     string // the configuration that keepalived's parser was asked about
	checkedErr  error
	refused     string // what was wrong with the mode file, as it was counted
	refusedEver int
	choosing    logging.Transitions // of the mode file
	keeping     logging.Transitions // of the settings on disk
	moves       state.Moves
	migration   *state.Migration
}

// elect gives the VRRP settings of the node and the configuration to run, nil while it is
// not known which, and sees to it that the node moves with the others.
func (j *Job) elect(f *facts.Facts) (v1alpha1.VRRPSettings, *keepalived.Conf) {
	spec, t := &f.Cluster.Spec, readTarget(j.Root, &f.Cluster.Spec)
	j.noteModeFile(t.Problem)
	conf := func(v v1alpha1.VRRPSettings) *keepalived.Conf {
		n := *f.Node
		n.VRRP = &v
		return keepalived.New(f.Cluster, &n)
	}
	kept := readSettings(j.below(keptSettings))
	if j.watching.lifetime != nil { // no node of the cluster: it keeps the settings that it began with
		v := migration.InForce(spec.VRRP, kept)
		return v, conf(v)
	}
	var list nodes.Snapshot
	if j.Source.Nodes != nil {
		list = j.Source.Nodes.Current()
	}
	now, s := time.Now(), &j.looping.settings
	in := migration.Input{
		Now: now, Up: now.Sub(j.begun), Self: f.Node.Name, Target: t, Initial: spec.VRRP.Initial(), Kept: kept,
		Unregistered: f.Node.Unregistered, Stale: list.Stale, Listed: list.Registered,
		OpenShift: spec.VRRP.Start != nil || slices.ContainsFunc(list.Updates, func(u nodes.NodeUpdate) bool { return u.CurrentConfig != "" || u.DesiredConfig != "" }),
		Nodes:     nodesOf(spec, &list), Conf: conf, Held: j.record.Addresses(), Heard: j.adverts.heard(now),
	}
	if s.machine.Pending(&in) {
		in.Unready = j.unready(f, &t, in.OpenShift, list.Bootstrap)
		if in.Unready == "" {
			if err := s.tryOut(j, conf(t.Settings)); err != nil {
				in.Refused = "the new configuration: " + err.Error()
			}
		}
	}
	out := s.machine.Step(in)
	for _, l := range out.Log {
		j.Log.Log(context.Background(), l.Level, l.Text, l.Args...)
	}
	j.adverts.follow(out.Listen, membership.Addresses(f.Node.Peers))
	if out.Announce != nil && j.Source.Nodes != nil {
		j.Source.Nodes.Announce(out.Announce.Encode())
	}
	if out.Again > 0 {
		s.lookAgain(out.Again, j.loop.Now)
	}
	if kept != nil && out.Conf != nil && out.Settings != *kept {
		j.announceHeld(out.Conf) // others may have had a VIP for a moment
	}
	s.leftOut, s.migration = out.LeftOut, out.Status
	s.moves = state.Moves{Moved: out.Counts.Moved, Back: out.Counts.Back, Refused: s.refusedEver}
	return out.Settings, out.Conf
}

// lookAgain has the loop look again after that time, and not sooner on that account.
func (s *settings) lookAgain(after time.Duration, look func()) {
	if s.timer == nil {
		s.timer = time.AfterFunc(after, look)
	} else {
		s.timer.Reset(after)
	}
}

// nodesOf are the nodes of the cluster as this one sees them, by name.
func nodesOf(spec *v1alpha1.ClusterConfigSpec, list *nodes.Snapshot) (out []migration.Node) {
	holds := map[string]bool{}
	for _, p := range append(slices.Clone(list.Peers), list.Self) {
		holds[p.Name] = slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return spec.Hosts(&g, p.Role, p.Labels) })
	}
	for _, u := range list.Updates {
		announced, _ := migration.ParseAnnouncement(u.VRRP)
		out = append(out, migration.Node{Name: u.Name, Update: u.Update, Holds: holds[u.Name], Announced: announced})
	}
	return out
}

// unready says why this node is not ready to move, or nothing.
func (j *Job) unready(f *facts.Facts, t *migration.Target, openShift bool, b nodes.Bootstrap) string {
	control := f.Node.Role == v1alpha1.RoleMaster || f.Node.Role == v1alpha1.RoleArbiter
	switch {
	case t.Problem != nil:
		return t.Problem.Error()
	case j.Source.Problem() != "":
		return "cluster.yaml is not right"
	case control && b.Address.IsValid() && !b.Gone:
		return "the bootstrap, " + b.Address.String() + ", is still there"
	case control && openShift && !b.Gone:
		return "nobody says yet that the bootstrap is gone (ConfigMap etcd-endpoints in openshift-etcd)"
	}
	return ""
}

// tryOut has keepalived's parser look at a configuration that is not to run yet.
func (s *settings) tryOut(j *Job, conf *keepalived.Conf) error {
	data, err := j.render(conf)
	if err != nil {
		return err
	}
	if s.checked == string(data) && s.checkedErr == nil {
		return nil
	}
	s.checked, s.checkedErr = string(data), j.daemon.Takes(context.Background(), data)
	return s.checkedErr
}

// readSettings returns what writeSettings wrote, nil for a file that is missing
// or worth nothing.
func readSettings(path string) *v1alpha1.VRRPSettings {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var v v1alpha1.VRRPSettings
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	n := v1alpha1.Node{Name: "node", Role: v1alpha1.RoleMaster, VRRP: &v}
	if n.Validate().Err() != nil {
		return nil
	}
	return &v
}

func writeSettings(path string, v v1alpha1.VRRPSettings) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(path, append(data, '\n'), 0o644)
	return err
}
