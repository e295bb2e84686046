package migration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/nodelist"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

var (
	fastSettings    = v1alpha1.VRRP{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast}.Settings()
	virtualSettings = v1alpha1.VRRP{Profile: v1alpha1.ProfileVirtual, Mode: v1alpha1.ModeUnicast}.Settings()
	classicSettings = v1alpha1.ClassicSettings(v1alpha1.ModeUnicast)
	noon            = time.Date(2026, 5, 2, 12, 0, 3, 0, time.UTC)
	done            = nodelist.Update{CurrentConfig: "rendered-1", DesiredConfig: "rendered-1", State: "Done", KubeletVersion: "v1.34.2"}
)

// three returns nodes that have the classic settings and are ready for the fast ones.
func three() view {
	v := view{now: noon, self: "a", running: classicSettings, target: fastSettings, openShift: true, fresh: true}
	for _, name := range []string{"a", "b", "c"} {
		v.nodes = append(v.nodes, Node{Name: name, Holds: true, Update: done, Announced: Announcement{Running: classicSettings.String(), Ready: fastSettings.String()}})
	}
	return v
}

// at is the instant that the nodes choose at noon.
var at = time.Date(2026, 5, 2, 12, 0, 30, 0, time.UTC)

func TestAgreement(t *testing.T) {
	say := func(v *view, at time.Time, who ...int) {
		for _, n := range who {
			v.nodes[n].Announced.At = at
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*view)
		before agreement
		// want is the instant that this node announces, waits part of its reason to wait.
		want   time.Time
		waits  string
		agreed bool
		late   bool
	}{
		{name: "all are ready", want: at, waits: "a and 2 more to agree to 2026-05-02T12:00:30Z"},
		{name: "an instant of the grid is taken itself", change: func(v *view) { v.now = at.Add(-leadTime - 6*announcementTime) }, want: at, waits: "a and 2 more"},
		{name: "one has yet to say so", change: func(v *view) { say(v, at, 0, 1) }, want: at, waits: "c to agree"},
		{name: "all say so", change: func(v *view) { say(v, at, 0, 1, 2) }, want: at, agreed: true},
		{name: "this node's announcement is not seen yet", change: func(v *view) { say(v, at, 1, 2) }, want: at, waits: "a to agree"},
		{name: "the latest counts", change: func(v *view) { say(v, at.Add(10*time.Second), 2) }, want: at.Add(10 * time.Second), waits: "a and 1 more to agree"},
		{name: "an earlier one does not", change: func(v *view) { say(v, at.Add(-10*time.Second), 2) }, want: at, waits: "a and 2 more"},
		{name: "one of long ago does not", change: func(v *view) { say(v, at.Add(-time.Hour), 0, 1, 2) }, want: at, waits: "a and 2 more"},
		{name: "it stays agreed up to the instant", before: agreement{at: at, agreed: true, anchor: noon},
			change: func(v *view) { say(v, at, 0, 1, 2); v.now = at }, want: at, agreed: true},
		{name: "too late to agree", before: agreement{at: at, anchor: noon},
			change: func(v *view) { say(v, at, 0, 1, 2); v.now = at.Add(-7 * time.Second) }, want: at.Add(20 * time.Second), waits: "a and 2 more"},
		{name: "one withdraws its announcement", before: agreement{at: at, agreed: true, anchor: noon},
			change: func(v *view) { say(v, at, 0, 1); v.now = at.Add(-time.Second) }, want: at, waits: "c to agree"},
		{name: "one is not ready any more", before: agreement{at: at, agreed: true, anchor: noon},
			change: func(v *view) {
				say(v, at, 0, 1)
				v.nodes[2].Announced = Announcement{Running: classicSettings.String(), Why: "keepalived refuses"}
			}, waits: "c: not ready: keepalived refuses"},
		{name: "this node is not ready", change: func(v *view) { v.unready = "the disk is full" }, waits: "this node: the disk is full"},
		{name: "no agent there", change: func(v *view) { v.nodes[1].Announced = Announcement{} }, waits: "b: no agent there"},
		{name: "another target there", change: func(v *view) { v.nodes[1].Announced.Ready = "fast/multicast/v3/40ms" }, waits: "b: it is ready for fast/multicast"},
		{name: "no API", change: func(v *view) { v.fresh = false }, waits: "an API server"},
		{name: "no API when all had agreed", before: agreement{at: at, agreed: true, anchor: noon},
			change: func(v *view) { say(v, at, 0, 1, 2); v.fresh = false; v.now = at }, waits: "an API server"},
		{name: "an update goes on", change: func(v *view) { v.nodes[2].Update.DesiredConfig = "rendered-2" }, waits: "c: its update is not done (rendered-1, not yet rendered-2)"},
		{name: "an update works", change: func(v *view) { v.nodes[2].Update.State = "Working" }, waits: "c: its update is not done (state Working)"},
		{name: "several", change: func(v *view) { v.nodes[1].Update.State, v.nodes[2].Update.State = "Working", "Degraded" }, waits: "b: its update is not done (state Working) (and 1 more nodes)"},
		{name: "another kubelet", change: func(v *view) { v.nodes[2].Update.KubeletVersion = "v1.35.0" }, waits: "c: its kubelet is v1.35.0, that of a is v1.34.2"},
		{name: "the operator has reported nothing", change: func(v *view) { v.nodes[2].Update = nodelist.Update{KubeletVersion: "v1.34.2"} }, waits: "c: the machine config operator has not reported"},
		{name: "there is no such operator", change: func(v *view) {
			v.openShift = false
			for i := range v.nodes {
				v.nodes[i].Update = nodelist.Update{KubeletVersion: "v1.34.2"}
			}
		}, want: at, waits: "a and 2 more"},
		{name: "a node that holds no VIP has no say", change: func(v *view) { v.nodes[2].Holds, v.nodes[2].Announced = false, Announcement{}; say(v, at, 0, 1) }, want: at, agreed: true},
		{name: "its update has to be done, too", change: func(v *view) { v.nodes[2].Holds, v.nodes[2].Update.State = false, "Working" }, waits: "c: its update"},
		{name: "one is there already", change: func(v *view) { v.nodes[2].Announced.Running = fastSettings.String(); say(v, at, 0, 1) }, want: at, agreed: true},
		{name: "most are there already", change: func(v *view) {
			v.nodes[1].Announced.Running, v.nodes[2].Announced.Running = fastSettings.String(), fastSettings.String()
		}, want: at, waits: "a to agree", late: true},
		{name: "planned", change: func(v *view) { v.planned = noon.Add(time.Hour); say(v, v.planned, 0, 1, 2) }, want: noon.Add(time.Hour), agreed: true},
		{name: "planned, and not all agree", change: func(v *view) { v.planned = noon.Add(time.Hour); say(v, v.planned, 0, 1) }, want: noon.Add(time.Hour), waits: "c to agree"},
		{name: "the planned time has passed", change: func(v *view) { v.planned = noon.Add(-time.Minute) }, waits: "another planned time"},
		{name: "too late for the planned time", change: func(v *view) { v.planned = noon.Add(5 * time.Second); say(v, v.planned, 0, 1, 2) }, waits: "another planned time"},
		{name: "hard case 27: another clock is an hour ahead", change: func(v *view) { say(v, at.Add(time.Hour), 1) }, waits: "b: it plans for 2026-05-02T13:00:30Z"},
		{name: "hard case 27: another clock is an hour behind", change: func(v *view) { say(v, at.Add(-time.Hour), 1); say(v, at, 0, 2) }, want: at, waits: "b to agree"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := three()
			if tt.change != nil {
				tt.change(&v)
			}
			v.up = v.now.Sub(noon)
			a := tt.before
			got := a.evaluate(v)
			if !got.at.Equal(tt.want) || !got.announcement.At.Equal(tt.want) {
				t.Errorf("at %v: instant %v, want %v", got.at, got.announcement.At, tt.want)
			}
			if got.agreed != tt.agreed || got.late != tt.late || !strings.Contains(got.waits, tt.waits) || (got.waits == "") != (tt.waits == "") {
				t.Errorf("%+v, want agreed %t, late %t, waiting for %q", got, tt.agreed, tt.late, tt.waits)
			}
			testkit.Equal(testkit.In(t, got.announcement), v.unready == "", got.announcement.Ready == fastSettings.String())
			if text := got.announcement.Encode(); !nodelist.ValidVRRPText(text) || text == "" {
				t.Errorf("%q is not a valid announcement", text)
			} else if back, ok := ParseAnnouncement(text); !ok || !back.At.Equal(got.announcement.At) || back.Ready != got.announcement.Ready {
				t.Errorf("%q parses as %+v", text, back)
			}
		})
	}
}

// An excluded node blocks no other one: neither by missing settings, nor by an older kubelet as
// the first of the list, nor by its announcements.
func TestWithout(t *testing.T) {
	for name, change := range map[string]func(*Node){
		"no agent there":      func(n *Node) { n.Announced = Announcement{} },
		"it is not ready":     func(n *Node) { n.Announced = Announcement{Running: classicSettings.String(), Why: "it is not"} },
		"another instant":     func(n *Node) { n.Announced.At = at.Add(time.Hour) },
		"an update goes on":   func(n *Node) { n.Update.State = "Degraded" },
		"an older kubelet":    func(n *Node) { n.Update.KubeletVersion = "v1.33.0" },
		"it says it is there": func(n *Node) { n.Announced.Running = fastSettings.String() },
	} {
		v := three()
		v.self = "c"
		change(&v.nodes[0])
		for i := range v.nodes[1:] {
			v.nodes[1+i].Announced.At = at
		}
		v.nodes = without(v.nodes, []string{"a"})
		if got := new(agreement).evaluate(v); !got.agreed || got.waits != "" || got.late || v.migrated() != 0 {
			t.Errorf("%s: %+v, %d have migrated", name, got, v.migrated())
		}
	}
}

// Once the instant is chosen, steps of the wall clock change nothing.
func TestHardCase27StepAfterAgreement(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -time.Second, time.Second, time.Hour} {
		a, v := agreement{}, three()
		a.evaluate(v)
		for i := range v.nodes {
			v.nodes[i].Announced.At = at
		}
		v.now, v.up = v.now.Add(2*time.Second), 2*time.Second
		if got := a.evaluate(v); !got.agreed {
			t.Fatalf("%+v", got)
		}
		v.now, v.up = v.now.Add(step), 20*time.Second
		if got := a.evaluate(v); !got.agreed || got.left != 7*time.Second {
			t.Errorf("after a step by %v: %+v", step, got)
		}
		v.up = 27 * time.Second
		if got := a.evaluate(v); !got.agreed || got.left != 0 {
			t.Errorf("after a step by %v, at the instant: %+v", step, got)
		}
	}
}

// simulated is a node of a simulated cluster.
type simulated struct {
	agreement
	name      string
	clock     time.Duration // error of its clock
	away      func(now time.Duration) bool
	sees      map[string]Announcement
	next      map[string]time.Duration // when the latest announcement of a node arrives here
	announced Announcement
	running   v1alpha1.VRRPSettings
	unready   string
	migrated  time.Duration
}

// Announcements arrive late, clocks are off by seconds, and any node may lose the API at any
// time: either no node migrates, or all do within the time that a backup with the classic
// settings waits for an advertisement.
func TestAgreementSimulated(t *testing.T) {
	const clusters = 20
	count := 0
	for seed := range uint64(clusters) {
		r := rand.New(rand.NewPCG(seed, 23))
		var list []*simulated
		bad := r.IntN(4) == 0
		for i := range 3 + r.IntN(6) {
			n := &simulated{name: fmt.Sprint("n", i), running: classicSettings, sees: map[string]Announcement{}, next: map[string]time.Duration{}}
			n.clock = time.Duration(r.IntN(4000)-2000) * time.Millisecond
			gone, back := time.Duration(r.IntN(90))*time.Second, time.Duration(r.IntN(30))*time.Second
			n.away = func(now time.Duration) bool { return now >= gone && now < gone+back && seed%2 == 0 }
			list = append(list, n)
		}
		if bad {
			list[r.IntN(len(list))].unready = "it is not"
		}
		var first time.Duration
		for now := time.Duration(0); now < 4*time.Minute; now += 250 * time.Millisecond {
			for _, n := range list {
				n.receive(r, now, list)
				if first > 0 && n.running == classicSettings && n.unready == "" {
					n.running, n.migrated = fastSettings, now // it receives the new adverts
				}
				out := n.evaluate(view{
					now: noon.Add(now + n.clock), up: now, self: n.name, running: n.running, target: fastSettings,
					unready: n.unready, fresh: !n.away(now), nodes: n.others(list),
				})
				if !n.away(now) {
					n.announced = out.announcement
				}
				if out.agreed && out.left <= 0 && n.running == classicSettings {
					n.running, n.migrated = fastSettings, now
					if first == 0 {
						first = now
					}
				}
			}
		}
		for _, n := range list {
			switch {
			case bad && n.running != classicSettings:
				t.Errorf("seed %d: %s migrated although one is not ready", seed, n.name)
			case first > 0 && (n.running != fastSettings || n.migrated-first > DownTime(classicInstance())):
				t.Errorf("seed %d: %s migrated at %v, the first at %v", seed, n.name, n.migrated, first)
			case !bad && first == 0:
				t.Errorf("seed %d: no node migrated; %s: %+v", seed, n.name, n.agreement)
			}
		}
		if first > 0 {
			count++
		}
	}
	t.Logf("%d of %d clusters migrated", count, clusters)
}

// receive reads the announcements that have arrived by now.
func (n *simulated) receive(r *rand.Rand, now time.Duration, list []*simulated) {
	for _, o := range list {
		switch due, waiting := n.next[o.name]; {
		case o.announced == n.sees[o.name]:
		case !waiting:
			n.next[o.name] = now + time.Duration(r.IntN(3000))*time.Millisecond
		case now >= due && !n.away(now):
			n.sees[o.name] = o.announced
			delete(n.next, o.name)
		}
	}
}

func (n *simulated) others(list []*simulated) (out []Node) {
	for _, o := range list {
		out = append(out, Node{Name: o.name, Holds: true, Announced: n.sees[o.name]})
	}
	return out
}

// Only nodes that can hold a VIP have to agree, and count as migrated; the node itself is not
// among its peers.
func TestParticipants(t *testing.T) {
	fast, classic := fastSettings.String(), classicSettings.String()
	for _, tt := range []struct {
		name        string
		running     [3]string // of node a, which evaluates, and its peers
		holds       [3]bool
		remaining   string
		migrated    int
		mostOfOther bool
	}{
		{"none has migrated", [3]string{classic, classic, classic}, [3]bool{true, true, true}, "abc", 0, false},
		{"this one has", [3]string{fast, classic, classic}, [3]bool{true, true, true}, "bc", 0, false},
		{"another one has", [3]string{classic, fast, classic}, [3]bool{true, true, true}, "ac", 1, false},
		{"both others have", [3]string{classic, fast, fast}, [3]bool{true, true, true}, "a", 2, true},
		{"one of them holds nothing", [3]string{classic, fast, classic}, [3]bool{true, true, false}, "a", 1, true},
		{"one that migrated holds nothing", [3]string{classic, fast, classic}, [3]bool{true, false, true}, "ac", 0, false},
		{"no other one holds anything", [3]string{classic, fast, fast}, [3]bool{true, false, false}, "a", 0, false},
	} {
		v := three()
		for i := range v.nodes {
			v.nodes[i].Announced.Running, v.nodes[i].Holds = tt.running[i], tt.holds[i]
		}
		remaining := ""
		for _, n := range v.remaining() {
			remaining += n.Name
		}
		if migrated, most := v.migrated(), v.mostMigrated(); remaining != tt.remaining || migrated != tt.migrated || most != tt.mostOfOther {
			t.Errorf("%s: remaining %q, migrated %d, most %t; want %q, %d, %t", tt.name, remaining, migrated, most, tt.remaining, tt.migrated, tt.mostOfOther)
		}
	}
}
