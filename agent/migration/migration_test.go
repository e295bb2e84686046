package migration

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// instanceOf returns an instance of a node with two peers.
func instanceOf(v v1alpha1.VRRPSettings) *keepalived.Instance {
	i := &keepalived.Instance{
		Name: "demo_API_0", Version: v.Version, Interface: "eth0", RouterID: 10, VIP: netip.MustParsePrefix("192.0.2.5/32"),
		AdvertInterval: vrrp.Seconds(v.AdvertIntervalMS),
	}
	if v.Mode == v1alpha1.ModeUnicast {
		i.Peers = []netip.Addr{netip.MustParseAddr("192.0.2.11"), netip.MustParseAddr("192.0.2.12")}
		i.FullTTL = v.Profile != v1alpha1.ProfileClassic
	}
	return i
}

func classicInstance() *keepalived.Instance { return instanceOf(classicSettings) }

// The order of nodes and their waits are those of docs/upgrade.md.
func TestMigrationOrder(t *testing.T) {
	multicast := func(v v1alpha1.VRRPSettings) v1alpha1.VRRPSettings { v.Mode = v1alpha1.ModeMulticast; return v }
	vrrp3 := func(v v1alpha1.VRRPSettings) v1alpha1.VRRPSettings { v.Version = 3; return v }
	for _, tt := range []struct {
		name           string
		from, to       v1alpha1.VRRPSettings
		holder, backup time.Duration // delay after the instant if no advertisement is received
		holderReceives bool          // migrates at once when it receives advertisements
		backupReceives bool
	}{
		{"faster", classicSettings, fastSettings, 0, time.Second, false, true},
		{"at the same pace", classicSettings, vrrp3(classicSettings), 0, time.Second, false, true},
		{"slower", fastSettings, classicSettings, time.Second, 0, false, false},
		{"to virtual", fastSettings, virtualSettings, 200 * time.Millisecond, 0, false, false},
		{"from virtual", virtualSettings, fastSettings, 0, 200 * time.Millisecond, false, true},
		{"another mode, fast", fastSettings, multicast(fastSettings), 660 * time.Millisecond, 0, true, false},
		{"another mode, back", multicast(fastSettings), fastSettings, 660 * time.Millisecond, 0, true, false},
		{"another mode, faster", classicSettings, multicast(fastSettings), 660 * time.Millisecond, 0, true, false},
		{"another mode, slower", fastSettings, multicast(classicSettings), 4500 * time.Millisecond, 0, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := []unit{{name: "demo_API_0", Pair: Pair{"demo_API_0", *instanceOf(tt.from), *instanceOf(tt.to)}, vips: []string{"192.0.2.5"}}}
			for _, holds := range []bool{true, false} {
				wait, received := tt.backup, tt.backupReceives
				if holds {
					wait, received = tt.holder, tt.holderReceives
				}
				began := time.Now()
				migrates := func(after time.Duration, received time.Time) bool {
					s := &migration{from: tt.from, to: tt.to, began: began, migrated: map[string]bool{}}
					again := s.step(began.Add(after), list, func(string) bool { return holds }, func(string) time.Time { return received })
					testkit.Equal(testkit.In(t, "evaluates again in", again), again == 0, s.migrated["demo_API_0"])
					return again == 0
				}
				testkit.Equal(testkit.In(t, "holds", holds, "and migrates after", wait), true, migrates(wait, time.Time{}))
				if wait > 0 && migrates(wait-time.Millisecond, time.Time{}) {
					t.Errorf("holds %t: it migrates before %v", holds, wait)
				}
				if wait > 0 && migrates(time.Millisecond, began) != received {
					t.Errorf("holds %t: migrates at an advertisement: %t, want %t", holds, !received, received)
				}
				if !holds && wait >= DownTime(instanceOf(tt.from)) {
					t.Errorf("a backup waits %v, and would take the VIP after %v", wait, DownTime(instanceOf(tt.from)))
				}
			}
		})
	}
}

func TestLagging(t *testing.T) {
	list := []unit{{name: "demo_API_0", Pair: Pair{"demo_API_0", *instanceOf(classicSettings), *instanceOf(fastSettings)}}}
	began := time.Now()
	s := &migration{from: classicSettings, to: fastSettings, began: began}
	for after, want := range map[time.Duration]string{-time.Second: "", time.Second: "", 4900 * time.Millisecond: "", 5100 * time.Millisecond: "demo_API_0"} {
		got := s.lagging(list, func(string) time.Time { return began.Add(after) })
		testkit.Equal(testkit.In(t, "an advert with the old settings after", after), want, got)
	}
}

// A sync group migrates as one: keepalived ties the states of its members.
func TestUnits(t *testing.T) {
	four, six := *instanceOf(classicSettings), *instanceOf(classicSettings)
	six.Name, six.VIP = "demo_API_1", netip.MustParsePrefix("2001:db8::5/128")
	apart := &keepalived.Conf{Instances: []keepalived.Instance{four, six}}
	together := *apart
	together.SyncGroups = []keepalived.SyncGroup{{Name: "demo_API", Members: []string{"demo_API_0", "demo_API_1"}}}
	if got := units(apart, apart); len(got) != 2 || got[0].name != "demo_API_0" || got[1].name != "demo_API_1" {
		t.Errorf("%+v", got)
	}
	got := units(&together, &together)
	if len(got) != 1 || got[0].name != "demo_API" || len(got[0].vips) != 2 {
		t.Fatalf("%+v", got)
	}
	fresh := together
	fresh.Instances = []keepalived.Instance{*instanceOf(fastSettings), *instanceOf(fastSettings)}
	fresh.Instances[1].Name, fresh.Instances[1].VIP = six.Name, six.VIP
	s := &migration{migrated: map[string]bool{}}
	if mixed := s.mix(&together, &fresh); mixed.Instances[0].Version != 2 || mixed.Instances[1].Version != 2 {
		t.Errorf("%+v", mixed.Instances)
	}
	s.migrated["demo_API"] = true
	if mixed := s.mix(&together, &fresh); mixed.Instances[0].Version != 3 || mixed.Instances[1].Version != 3 || together.Instances[0].Version != 2 {
		t.Errorf("%+v", mixed.Instances)
	}
}

// Migrated and migrating units block no later one, and one that has not migrated does not keep
// later ones from their new configuration.
func TestUnitsMigrateAlone(t *testing.T) {
	old, fresh := &keepalived.Conf{}, &keepalived.Conf{}
	var list []unit
	for i, name := range []string{"a", "b", "c"} {
		from, to := *instanceOf(fastSettings), *instanceOf(classicSettings)
		from.Name, to.Name = name, name
		old.Instances, fresh.Instances = append(old.Instances, from), append(fresh.Instances, to)
		list = append(list, unit{name: name, Pair: Pair{name, from, to}, vips: []string{fmt.Sprint("192.0.2.", i)}})
	}
	began := time.Now()
	holdsA := func(vip string) bool { return vip == "192.0.2.0" }
	s := &migration{from: fastSettings, to: classicSettings, began: began, migrated: map[string]bool{}}
	never := func(string) time.Time { return time.Time{} }
	// Slower settings: backups migrate at once, the holder a second later.
	if again := s.step(began, list, holdsA, never); again != time.Second || s.migrated["a"] || !s.migrated["b"] || !s.migrated["c"] {
		t.Errorf("migrated %v, evaluates again in %v", s.migrated, again)
	}
	mixed := s.mix(old, fresh)
	for i, want := range []*keepalived.Conf{old, fresh, fresh} {
		if got := mixed.Instances[i]; got.Name != list[i].name || got.AdvertInterval != want.Instances[i].AdvertInterval {
			t.Errorf("%s runs the wrong settings", list[i].name)
		}
	}
	s.migrated = map[string]bool{"a": true}
	if again := s.step(began, list, holdsA, never); again != 0 || len(s.migrated) != 3 {
		t.Errorf("migrated %v, evaluates again in %v", s.migrated, again)
	}
}
