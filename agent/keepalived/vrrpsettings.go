package keepalived

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/keepalived/membership"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/fileio"
	"github.com/vipgen/vipgen/templates"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// settingsMigration migrates the node to other VRRP settings together with the other nodes. It is
// owned by the loop goroutine, except for adverts.
type settingsMigration struct {
	machine migration.Machine
	adverts *advertListener
	begun   time.Time // start of the job
	timer   *time.Timer

	modeFile   modeFile
	checked    string // the last configuration given to keepalived's parser
	checkedErr error
	storing    logging.Transitions
	last       chosenSettings
	leftOut    []string // reasons for left-out VIPs, as logged last
	deciding   logging.Transitions
}

// chosenSettings is the outcome of chooseSettings.
type chosenSettings struct {
	settings   v1alpha1.VRRPSettings
	conf       *keepalived.Conf // nil while the settings are not known
	byModeFile bool             // left out by the mode file (without)
	migrations state.Migrations
	migration  *state.Migration
}

// wake calls now after a delay; a pending call is replaced.
func (m *settingsMigration) wake(after time.Duration, now func()) {
	if m.timer == nil {
		m.timer = time.AfterFunc(after, now)
	} else {
		m.timer.Reset(after)
	}
}

// chooseSettings returns the VRRP settings of the node and the configuration to run, and
// advances a migration.
func (j *Job) chooseSettings(f *facts.Facts) chosenSettings {
	spec, t, m := &f.Cluster.Spec, readTarget(j.Root, &f.Cluster.Spec), &j.settings
	m.modeFile.report(t.Problem, j.Log)
	conf := func(v v1alpha1.VRRPSettings) *keepalived.Conf {
		n := *f.Node
		n.VRRP = &v
		return keepalived.New(f.Cluster, &n)
	}
	kept := readSettings(j.below(keptSettings))
	if j.bootstrap != nil { // not a node of the cluster: keeps its initial settings
		v := migration.InForce(spec.VRRP, kept)
		return chosenSettings{settings: v, conf: conf(v)}
	}
	var list nodelist.Snapshot
	if j.Source.Nodes != nil {
		list = j.Source.Nodes.Current()
	}
	now := time.Now()
	in := migration.Input{
		Now: now, Up: now.Sub(m.begun), Self: f.Node.Name, Target: t, Initial: spec.VRRP.Initial(), Kept: kept,
		Unregistered: f.Node.Unregistered, Stale: list.Stale, Listed: list.Registered,
		OpenShift: spec.VRRP.Start != nil || slices.ContainsFunc(list.Updates, func(u nodelist.NodeUpdate) bool { return u.CurrentConfig != "" || u.DesiredConfig != "" }),
		Nodes:     nodesOf(spec, &list), Conf: conf, Held: j.record.nodeAddresses(), Adverts: m.adverts.received(now), Peers: f.Node.Peers,
	}
	if m.machine.Pending(&in) {
		in.Unready = j.unready(f, &t, in.OpenShift, list.Bootstrap)
		if in.Unready == "" {
			if err := j.tryOut(conf(t.Settings)); err != nil {
				in.Refused = migration.WaitConfiguration.Text(err)
			}
		}
	}
	out := m.machine.Step(in)
	for _, l := range out.Log {
		j.Log.Log(context.Background(), l.Level, l.Text, l.Args...)
	}
	m.adverts.follow(out.Listen, membership.Addresses(f.Node.Peers))
	if out.Announce != nil && j.Source.Nodes != nil {
		j.Source.Nodes.Announce(out.Announce.Encode())
	}
	if out.Again > 0 {
		m.wake(out.Again, j.loop.Now)
	}
	if kept != nil && out.Conf != nil && out.Settings != *kept {
		j.announceHeld(out.Conf) // another node may have held a VIP for a moment
	}
	counts := state.Migrations{Migrated: out.Counts.Migrated, RolledBack: out.Counts.RolledBack, Refused: m.modeFile.count}
	m.last = chosenSettings{settings: out.Settings, conf: out.Conf, byModeFile: out.ByModeFile, migrations: counts, migration: out.Status}
	return m.last
}

// tryOut checks a future configuration with keepalived's parser.
func (j *Job) tryOut(conf *keepalived.Conf) error {
	data, err := templates.ExecuteFile(j.below(v1alpha1.KeepalivedTemplate), conf)
	if err != nil {
		return err
	}
	if m := &j.settings; m.checked != string(data) || m.checkedErr != nil {
		m.checked, m.checkedErr = string(data), j.daemon.Accepts(context.Background(), data)
	}
	return j.settings.checkedErr
}

// announceHeld announces the VIPs of a configuration that are on this node.
func (j *Job) announceHeld(conf *keepalived.Conf) {
	held := j.record.nodeAddresses()
	j.neighbours.Announce(slices.DeleteFunc(vipsOf(conf), func(vip netip.Addr) bool { return !slices.Contains(held, vip) }))
}

// nodesOf returns the nodes of the cluster as this node sees them, by name.
func nodesOf(spec *v1alpha1.ClusterConfigSpec, list *nodelist.Snapshot) (out []migration.Node) {
	holds, spec := map[string]bool{}, spec.Elected()
	for _, p := range append(slices.Clone(list.Peers), list.Self) {
		holds[p.Name] = slices.ContainsFunc(spec.Groups, func(g v1alpha1.Group) bool { return spec.Hosts(&g, p.Role, p.Labels) })
	}
	for _, u := range list.Updates {
		announced, _ := migration.ParseAnnouncement(u.VRRP)
		out = append(out, migration.Node{Name: u.Name, Update: u.Update, Holds: holds[u.Name], Announced: announced})
	}
	return out
}

// unready returns why this node cannot migrate yet; empty if it can.
func (j *Job) unready(f *facts.Facts, t *migration.Target, openShift bool, b nodelist.Bootstrap) string {
	control := f.Node.Role == v1alpha1.RoleMaster || f.Node.Role == v1alpha1.RoleArbiter
	switch {
	case t.Problem != nil:
		return t.Problem.Error()
	case j.Source.Problem() != "":
		return migration.WaitCluster.Text()
	case control && b.Address.IsValid() && !b.Gone:
		return migration.WaitBootstrap.Text(b.Address)
	case control && openShift && !b.Gone:
		return migration.WaitAnnotation.Text()
	}
	return ""
}

// readSettings returns the settings stored by writeSettings, nil if the file is missing
// or invalid.
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
	_, err = fileio.Write(path, append(data, '\n'), 0o644)
	return err
}
