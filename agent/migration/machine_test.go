package migration

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// cluster returns the input of node a, of a, b and c: all are ready for the fast
// settings.
func cluster(after time.Duration) Input {
	in := Input{
		Now: noon.Add(after), Up: after, Self: "a", Initial: classicSettings, Listed: true,
		Target: Target{Settings: fastSettings}, Peers: []v1alpha1.Peer{{Name: "b", Addresses: instanceOf(fastSettings).Peers[:1]}},
		Conf: func(v v1alpha1.VRRPSettings) *keepalived.Conf {
			return &keepalived.Conf{Instances: []keepalived.Instance{*instanceOf(v)}}
		},
	}
	for _, name := range []string{"a", "b", "c"} {
		in.Nodes = append(in.Nodes, Node{Name: name, Holds: true, Announced: Announcement{Running: classicSettings.String(), Ready: fastSettings.String()}})
	}
	return in
}

// agreedTo returns the input after all nodes announced an instant.
func (in Input) agreedTo(at time.Time) Input {
	for i := range in.Nodes {
		in.Nodes[i].Announced.At = at
	}
	return in
}

// receiving adds advertisements of b with the given settings at their interval, the last one now.
func (in Input) receiving(v v1alpha1.VRRPSettings, number int) Input {
	var h Recorder
	from := instanceOf(fastSettings).Peers
	h.Follow(pairsOf(in.Conf(classicSettings), in.Conf(fastSettings)), from)
	i := instanceOf(v)
	for n := range number {
		h.Record("eth0", listener.Received{TTL: 255, Advert: vrrp.Advert{
			Source: from[0], Version: v.Version, RouterID: uint8(i.RouterID), Priority: 60, Interval: i.Interval(), VIPs: []netip.Addr{i.VIP.Addr()},
		}}, in.Now.Add(-time.Duration(number-1-n)*i.Interval()))
	}
	in.Adverts = h.Adverts(in.Now)
	return in
}

// with applies a change to an input.
func (in Input) with(change func(*Input)) Input { change(&in); return in }

// step is an input with the expected decision of the machine.
type step struct {
	in Input
	// runs are the settings of the instance in the configuration; nil for none.
	runs *v1alpha1.VRRPSettings
	// waits is contained in the reason to wait; empty where it waits for nothing.
	waits string
	// again is when it evaluates again; 0 for any time.
	again time.Duration
	// announces is contained in the announcement; empty for anything.
	announces string
	logs      string // contained in its log
	migrated  int
	back      int
}

func TestMachine(t *testing.T) {
	classic, fast := &classicSettings, &fastSettings
	const s = time.Second
	holder := func(in *Input) { in.Held = []netip.Addr{netip.MustParseAddr("192.0.2.5")} }
	unannounced := func(in *Input) { // the others announce nothing
		for i := range in.Nodes {
			in.Nodes[i].Announced = Announcement{}
		}
	}
	fastNow := func(in *Input) { // b and c have migrated
		for i := range in.Nodes[1:] {
			in.Nodes[1+i].Announced = Announcement{Running: fastSettings.String(), Ready: fastSettings.String()}
		}
	}
	kept := func(v v1alpha1.VRRPSettings) func(*Input) { return func(in *Input) { in.Kept = &v } }
	first := step{in: cluster(0), runs: classic, waits: "a and 2 more to agree to 2026-05-02T12:00:30Z", announces: "12:00:30Z", again: s}
	agreed := step{in: cluster(5 * s).agreedTo(at), runs: classic, again: 22 * s, announces: "12:00:30Z"}
	instant := at.Sub(noon)
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"nothing to migrate to", []step{{in: cluster(0).with(func(in *Input) { in.Target.Settings = classicSettings }), runs: classic}}},
		{"timing alone", []step{{in: cluster(0).with(func(in *Input) {
			in.Initial = fastSettings
			in.Target.Settings.AdvertIntervalMS = 2 * fastSettings.AdvertIntervalMS
		}), runs: &v1alpha1.VRRPSettings{Profile: "fast", Mode: "unicast", Version: 3, AdvertIntervalMS: 2 * fastSettings.AdvertIntervalMS}}}},
		{"the holder migrates at the instant", []step{first, agreed,
			{in: cluster(instant - s).agreedTo(at).with(holder), runs: classic, again: s},
			{in: cluster(instant).agreedTo(at).with(holder), runs: fast, migrated: 1},
		}},
		{"a backup waits for the holder", []step{first, agreed,
			{in: cluster(instant).agreedTo(at), runs: classic, again: s, migrated: 1},
			{in: cluster(instant + s/2).agreedTo(at), runs: classic, again: s / 2, migrated: 1},
			{in: cluster(instant + s).agreedTo(at), runs: fast, migrated: 1},
		}},
		{"a backup hears the holder", []step{first, agreed,
			{in: cluster(instant).agreedTo(at), runs: classic, again: s, migrated: 1},
			{in: cluster(instant+s/4).agreedTo(at).receiving(fastSettings, 1), runs: fast, migrated: 1},
		}},
		{"one withdraws in time", []step{first, agreed,
			{in: cluster(15 * s).agreedTo(at).with(func(in *Input) {
				in.Nodes[2].Announced = Announcement{Running: classicSettings.String(), Why: "the disk is full"}
			}),
				runs: classic, waits: "c: not ready: the disk is full"},
			{in: cluster(instant).agreedTo(at).with(func(in *Input) {
				in.Nodes[2].Announced = Announcement{Running: classicSettings.String(), Why: "the disk is full"}
			}),
				runs: classic, waits: "c: not ready"},
		}},
		{"not ready", []step{
			{in: cluster(0).with(func(in *Input) { in.Unready = "the bootstrap is still there" }), runs: classic, waits: "this node: the bootstrap is still there", announces: "the bootstrap is still there"},
			{in: cluster(s).with(func(in *Input) { in.Refused = "the new configuration: no" }), runs: classic, waits: "this node: the new configuration: no"},
		}},
		{"the mode file is wrong", []step{{in: cluster(0).with(func(in *Input) { in.Target.Problem, in.Unready = errors.New("no"), "no" }), runs: classic, waits: "no", announces: `"why":"no"`}}},
		{"it looks too late", []step{first, agreed,
			{in: cluster(instant + 3*s).agreedTo(at), runs: classic, waits: "a and 2 more to agree to 2026-05-02T12:01:"},
		}},
		{"what the others said need not be so, without an API server", []step{
			{in: cluster(0).with(fastNow).with(func(in *Input) { in.Stale = true }).receiving(classicSettings, 1), runs: classic, waits: "an API server"},
		}},
		{"a forged advert", []step{first, {in: cluster(s).receiving(fastSettings, 1), runs: classic, waits: "to agree", again: s}}},
		{"many of them", []step{first, {in: cluster(s).receiving(fastSettings, 9), runs: classic, waits: "to agree", logs: "ignored"}}},
		{"the others have migrated at the instant", []step{first, agreed,
			{in: cluster(instant-s).agreedTo(at).receiving(fastSettings, 9), runs: fast, migrated: 1},
		}},
		{"an instant that this node announced before its agent restarted", []step{
			{in: cluster(s).with(func(in *Input) { in.Nodes[0].Announced.At = noon }).receiving(fastSettings, 9), runs: fast, migrated: 1},
		}},
		{"one advert at such an instant", []step{
			{in: cluster(s).with(func(in *Input) { in.Nodes[0].Announced.At = noon }).receiving(fastSettings, 1), runs: classic, waits: "to agree"},
		}},
		{"most others say that they have", []step{first,
			{in: cluster(s).with(fastNow), runs: classic, waits: "a to agree"},
			{in: cluster(10 * s).with(fastNow), runs: classic, waits: "a to agree"},
			{in: cluster(11 * s).with(fastNow), runs: fast, migrated: 1},
		}},
		{"a lagging peer", []step{first, agreed,
			{in: cluster(instant).agreedTo(at).with(holder), runs: fast, migrated: 1},
			{in: cluster(instant+2*s).with(fastNow).receiving(classicSettings, 3), runs: fast, migrated: 1, again: s},
			{in: cluster(instant+4*s).with(fastNow).receiving(classicSettings, 3), runs: fast, migrated: 1, again: s},
			{in: cluster(instant+6*s).with(fastNow).receiving(classicSettings, 3), runs: classic, migrated: 1, back: 1},
			{in: cluster(instant + 7*s).with(fastNow), runs: classic, waits: "rolled back at", announces: "b still advertised classic/unicast/v2/1s (demo_API_0)", migrated: 1, back: 1},
			{in: cluster(instant + 11*time.Minute), runs: classic, waits: "to agree", migrated: 1, back: 1},
		}},
		{"left out", []step{
			{in: cluster(0).with(func(in *Input) { in.Target.Without = []string{"a"} }), waits: vrrp.LeftOutByModeFile.Text(), announces: `"running":"nothing"`},
			{in: cluster(s).with(func(in *Input) { in.Target.Without = []string{"b"} }), runs: classic, waits: "a and 1 more to agree"},
		}},
		{"another one is left out", []step{
			{in: cluster(0).with(func(in *Input) {
				in.Target.Without, in.Nodes[2].Announced = []string{"c"}, Announcement{}
			}), runs: classic, waits: "a and 1 more to agree"},
		}},
		{"it was away: the others say that they migrated", []step{{in: cluster(0).with(kept(classicSettings)).with(fastNow), runs: fast}}},
		{"it was away: their adverts show it", []step{{in: cluster(0).with(unannounced).receiving(fastSettings, 1), runs: fast}}},
		{"it was away: nobody says anything", []step{
			{in: cluster(0).with(unannounced), again: 4500 * time.Millisecond},
			{in: cluster(4 * s).with(unannounced), again: s / 2},
			{in: cluster(5 * s).with(unannounced), runs: classic, waits: "b: no agent there"},
		}},
		{"it is not registered yet", []step{{in: cluster(0).with(unannounced).with(func(in *Input) { in.Unregistered = true })}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var m Machine
			for n, want := range tt.steps {
				got := m.Step(want.in)
				var runs *v1alpha1.VRRPSettings
				if got.Conf != nil {
					runs = settingsOf(t, &got.Conf.Instances[0])
				}
				if (runs == nil) != (want.runs == nil) || runs != nil && *runs != *want.runs {
					t.Errorf("step %d: runs %v, want %v", n, runs, want.runs)
				}
				waits := ""
				if got.Status != nil {
					waits = got.Status.WaitsFor
				}
				if (waits == "") != (want.waits == "") || !strings.Contains(waits, want.waits) {
					t.Errorf("step %d: waits for %q, want %q", n, waits, want.waits)
				}
				if want.again != 0 && got.Again != want.again {
					t.Errorf("step %d: evaluates again in %v, want %v", n, got.Again, want.again)
				}
				if want.announces != "" && (got.Announce == nil || !strings.Contains(got.Announce.Encode(), want.announces)) {
					t.Errorf("step %d: announces %+v, want %s", n, got.Announce, want.announces)
				}
				if !strings.Contains(fmt.Sprint(got.Log), want.logs) {
					t.Errorf("step %d: logs %v, want %s", n, got.Log, want.logs)
				}
				testkit.Equal(testkit.In(t, "step", n), (Counts{Migrated: want.migrated, RolledBack: want.back}), got.Counts)
			}
		})
	}
}

// settingsOf returns the settings of an instance.
func settingsOf(t *testing.T, i *keepalived.Instance) *v1alpha1.VRRPSettings {
	t.Helper()
	v := v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast, Version: i.Version, AdvertIntervalMS: int(i.Interval().Milliseconds())}
	if i.Version == 2 {
		v.Profile = v1alpha1.ProfileClassic
	}
	if len(i.Peers) == 0 {
		v.Mode = v1alpha1.ModeMulticast
	}
	return &v
}
