package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/day2/doctor"
	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/manifest"
)

// diagnosed is a lab in which the causes of faults are known.
type diagnosed struct {
	*Cluster
	t   *testing.T
	ctx context.Context
	vip netip.Addr
}

// fault is a fault of the holder of the API VIP; do returns a function that ends it, unless it
// heals by itself. want is its cause; empty if the VIP must stay.
type fault struct {
	name string
	do   func(*diagnosed, *Node) (heal func() error)
	want doctor.Code
}

func newDiagnosed(t *testing.T) *diagnosed {
	t.Helper()
	testkit.Live(t)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	t.Cleanup(cancel)
	r, err := Demo()
	testkit.Must(t, err)
	plan, err := NewPlan(r, PlanOptions{Counts: map[string]int{"worker": 0}})
	testkit.Must(t, err)
	c := newLab(t, ctx, r, plan)
	return &diagnosed{Cluster: c, t: t, ctx: ctx, vip: c.VIPs(v1alpha1.GroupAPI)[0]}
}

func (d *diagnosed) must(err error) {
	d.t.Helper()
	testkit.Must(d.t, err)
}

// gone waits until the VIP is on another node, and on no other.
func (d *diagnosed) gone(h *Node) {
	d.t.Helper()
	d.must(Await(d.ctx, h.Name+" to lose the VIP", func() (bool, error) {
		n, err := d.Holder(d.ctx, d.vip)
		return err == nil && n != h, err
	}))
}

// taken waits until another node has the VIP, too.
func (d *diagnosed) taken(h *Node) {
	d.t.Helper()
	d.must(Await(d.ctx, "another node to take the VIP", func() (bool, error) {
		for _, n := range d.Nodes() {
			if has, err := n.Has(d.vip); n != h && (has || err != nil) {
				return has, err
			}
		}
		return false, nil
	}))
}

// apart is how long nodes are cut off, or suspended.
const apart = 2 * time.Second

var faults = []fault{
	{"keepalived is killed", func(d *diagnosed, h *Node) func() error {
		d.must(h.Signal(d.ctx, manifest.Keepalived, "keepalived", "keepalived", syscall.SIGKILL))
		d.gone(h)
		return nil
	}, doctor.KeepalivedDied},
	{"HAProxy is stopped", func(d *diagnosed, h *Node) func() error {
		restore, err := h.RemovePod(d.ctx, manifest.HAProxy)
		d.must(err)
		d.gone(h)
		return restore
	}, doctor.HAProxyDown},
	{"the API server does not answer, but HAProxy does", func(d *diagnosed, h *Node) func() error {
		began := time.Now()
		d.must(h.API.Freeze())
		d.must(Await(d.ctx, "the check to fail", func() (bool, error) {
			return d.recorded(h, func(e events.Event) bool {
				return e.Kind == events.Check && e.Name == "api" && !e.OK && e.Time.After(began)
			}), nil
		}))
		return h.API.Thaw
	}, ""},
	{"the network is cut", func(d *diagnosed, h *Node) func() error {
		d.must(d.Partition(h.Name))
		d.taken(h)
		time.Sleep(apart) // duration of the fault
		return d.Join
	}, doctor.CutOff},
	{"the link is down", func(d *diagnosed, h *Node) func() error {
		d.must(h.Unplug())
		d.gone(h)
		return h.PlugIn
	}, doctor.LinkLost},
	{"the node stands still", func(d *diagnosed, h *Node) func() error {
		_, err := h.Stall(d.ctx, apart, false)
		d.must(err)
		return nil
	}, doctor.NodeLate},
	{"the pod is stopped", func(d *diagnosed, h *Node) func() error {
		restore, err := h.RemovePod(d.ctx, manifest.Keepalived)
		d.must(err)
		d.gone(h)
		return restore
	}, doctor.AgentStopped},
	{"the agent is killed", func(d *diagnosed, h *Node) func() error {
		d.must(h.Signal(d.ctx, manifest.Keepalived, "keepalived", "vipgen-agent", syscall.SIGKILL))
		d.gone(h)
		return nil
	}, doctor.AgentKilled},
	{"power loss", func(d *diagnosed, h *Node) func() error {
		d.must(h.Kill())
		d.gone(h)
		return func() error { return h.Heal(d.ctx) }
	}, doctor.NodeDown},
}

// TestDoctor injects every fault into the holder of the API VIP once, and reads the nodes'
// records before and after it ends: the right cause is named, and never a wrong one with
// certainty.
func TestDoctor(t *testing.T) {
	d := newDiagnosed(t)
	for _, f := range faults {
		d.breaks(f)
	}
	began := time.Now()
	for _, n := range d.Nodes() {
		d.must(n.Write(v1alpha1.UserModeFile, []byte("mode: multicast\nprofile: fast\n")))
	}
	for _, n := range d.Nodes() {
		d.must(Await(d.ctx, n.Name+" to record the migration", func() (bool, error) {
			return d.recorded(n, func(e events.Event) bool { return e.Kind == events.Migration && e.State == events.Over }), nil
		}))
	}
	r := d.diagnose()
	for _, m := range r.Moves {
		if !m.At.Before(began) && m.Cause.Code != doctor.SettingsChanged {
			t.Errorf("migration: %+v", m)
		}
	}
	testkit.Empty(t, r.Clocks)
	testkit.Empty(t, r.Missing)
}

// breaks applies a fault to the holder when nothing else is in progress, and checks what doctor
// says before the fault ends and afterwards.
func (d *diagnosed) breaks(f fault) {
	d.t.Helper()
	d.settles()
	h, err := d.Holder(d.ctx, d.vip)
	d.must(err)
	began := time.Now().Add(-time.Second)
	heal := f.do(d, h)
	d.named(f, h.Name, began)
	if heal != nil {
		d.must(heal())
	}
	d.settles()
	if !d.named(f, h.Name, began) {
		d.t.Errorf("%s: not named", f.name)
	}
}

// named reports whether a move since a time has the cause of a fault, or none moved as expected.
// It fails the test if a wrong cause is certain.
func (d *diagnosed) named(f fault, node string, since time.Time) (named bool) {
	d.t.Helper()
	named = f.want == ""
	for _, m := range d.diagnose().Moves {
		if m.At.Before(since) || !slices.Contains(m.VIPs, d.vip) || !slices.Contains(m.From, node) {
			continue
		}
		d.t.Logf("%s: %s: %v > %v: %s (%s)", node, f.name, m.From, m.To, m.Cause.Text, m.Cause.Sure)
		named = m.Cause.Code == f.want || named && f.want != ""
		if m.Cause.Code != f.want && m.Cause.Sure == doctor.Certain {
			d.t.Errorf("%s: wrong with certainty: %s", f.name, m.Cause.Text)
		}
	}
	return named
}

// settles waits until every node takes part with all points again, and nothing has changed for
// a while, so that the next fault is another move.
func (d *diagnosed) settles() {
	d.t.Helper()
	const quiet, full = 3 * time.Second, 68
	since, last := time.Now(), ""
	d.must(Await(d.ctx, "all nodes to be as good as they were", func() (bool, error) {
		now, well := "", true
		for _, n := range d.Nodes() {
			s, err := Published[state.Keepalived](n)
			if err != nil || s == nil || len(s.Instances) == 0 {
				well = false
				continue
			}
			for _, i := range s.Instances {
				now += fmt.Sprint(n.Name, i.Name, i.Holds, i.Priority, " ")
				well = well && i.Priority == full
			}
		}
		if now != last || !well {
			since, last = time.Now(), now
		}
		return time.Since(since) > quiet, nil
	}))
}

// recorded reports whether a node has recorded an event.
func (d *diagnosed) recorded(n *Node, match func(events.Event) bool) bool {
	f, err := os.Open(n.Path("/etc/keepalived/" + events.FileName))
	if err != nil {
		return false
	}
	defer f.Close()
	list, _, err := events.Read(f)
	return err == nil && slices.ContainsFunc(list, match)
}

// diagnose reads the records of all nodes.
func (d *diagnosed) diagnose() *doctor.Report {
	d.t.Helper()
	var dirs []string
	for _, n := range d.Nodes() {
		dirs = append(dirs, n.Path("/etc/keepalived"))
	}
	files, err := doctor.Files(dirs)
	d.must(err)
	list, _, err := doctor.ReadFiles(files, nil)
	d.must(err)
	return doctor.Diagnose(list)
}
