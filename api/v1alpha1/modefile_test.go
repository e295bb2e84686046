package v1alpha1

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseModeFile(t *testing.T) {
	fast := VRRP{Profile: ProfileFast, Mode: ModeUnicast}.Settings()
	custom := VRRPSettings{Profile: ProfileCustom, Mode: ModeUnicast, Version: 3, AdvertIntervalMS: 100}
	for _, tt := range []struct {
		name, text string
		target     VRRPSettings
		want       string // the settings, or part of the error
		time       string
		without    string
	}{
		{name: "as upstream has it", text: "mode: multicast\n", target: fast, want: "fast/multicast/v3/40ms"},
		{name: "as rendered", text: "mode: unicast\nprofile: classic\n", target: fast, want: "classic/unicast/v2/1s"},
		{name: "a planned time", text: "mode: multicast\ntime: 2026-05-02T03:00:00Z\n", target: fast, want: "fast/multicast/v3/40ms", time: "2026-05-02T03:00:00Z"},
		{name: "a planned time elsewhere", text: "mode: multicast\ntime: \"2026-05-02T05:00:00+02:00\"\n", target: fast, want: "fast/multicast/v3/40ms", time: "2026-05-02T03:00:00Z"},
		{name: "nodes left out", text: "mode: multicast\nwithout: [worker-3, worker-4.example.com]\n", target: fast, want: "fast/multicast/v3/40ms", without: "worker-3 worker-4.example.com"},
		{name: "nodes left out alone", text: "without: [worker-3]", target: fast, want: "fast/unicast/v3/40ms", without: "worker-3"},
		{name: "no nodes left out", text: "without: []", target: fast, want: "mode or profile required"},
		{name: "a node that cannot be", text: "mode: multicast\nwithout: [Worker_3]", target: fast, want: "without: found \"Worker_3\""},
		{name: "a word for nodes", text: "mode: multicast\nwithout: worker-3", target: fast, want: "cannot unmarshal"},
		{name: "the profile alone", text: "profile: classic", target: fast, want: "classic/unicast/v2/1s"},
		{name: "custom", text: "profile: custom\nadvertInterval: 200ms", target: fast, want: "custom/unicast/v3/200ms"},
		{name: "custom, version 2", text: "profile: custom\nversion: 2\nadvertInterval: 2s", target: fast, want: "custom/unicast/v2/2s"},
		{name: "custom as cluster.yaml has it", text: "mode: multicast\nprofile: custom\n", target: custom, want: "custom/multicast/v3/100ms"},
		{name: "custom without an interval", text: "profile: custom", target: fast, want: "advertInterval is missing"},
		{name: "an interval that VRRPv2 has not", text: "profile: custom\nversion: 2\nadvertInterval: 100ms", target: fast, want: "whole seconds"},
		{name: "too long for IPv6", text: "profile: custom\nversion: 2\nadvertInterval: 100s", target: fast, want: "at most 40s"},
		{name: "nothing", text: "", target: fast, want: "mode or profile required"},
		{name: "a time alone", text: "time: 2026-05-02T03:00:00Z", target: fast, want: "mode or profile required"},
		{name: "no such mode", text: "mode: broadcast", target: fast, want: "mode: found"},
		{name: "no such profile", text: "profile: faster", target: fast, want: "profile: found"},
		{name: "no such key", text: "mode: unicast\nmodus: unicast", target: fast, want: "modus"},
		{name: "twice", text: "mode: unicast\nmode: multicast", target: fast, want: "already set"},
		{name: "two documents", text: "mode: unicast\n---\nmode: multicast", target: fast, want: "more than one"},
		{name: "an interval without custom", text: "profile: fast\nadvertInterval: 50ms", target: fast, want: "for profile custom alone"},
		{name: "a version without custom", text: "mode: unicast\nversion: 3", target: fast, want: "for profile custom alone"},
		{name: "no version", text: "profile: custom\nversion: 4\nadvertInterval: 50ms", target: fast, want: "version: found 4"},
		{name: "a negative interval", text: "profile: custom\nadvertInterval: -50ms", target: fast, want: "advertInterval: found -50ms"},
		{name: "no time", text: "mode: unicast\ntime: tomorrow", target: fast, want: "tomorrow"},
		{name: "a list", text: "[mode, unicast]", target: fast, want: "cannot unmarshal"},
		{name: "long", text: "#" + strings.Repeat("x", maxModeFile), target: fast, want: "bytes, more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := &ClusterConfigSpec{VRRP: ClusterVRRP{Target: tt.target}, Groups: []Group{{VIPs: []netip.Addr{netip.MustParseAddr("2001:db8::1")}}}}
			m, err := ParseModeFile([]byte(tt.text))
			var got VRRPSettings
			if err == nil {
				got, err = m.Settings(spec)
			}
			if err != nil {
				testkit.Contains(testkit.In(t, err), err.Error(), tt.want)
				return
			}
			testkit.Equal(t, tt.want, got.String())
			if is := m.Time != nil; is != (tt.time != "") || is && m.Time.UTC().Format(time.RFC3339) != tt.time {
				t.Errorf("time %v, want %s", m.Time, tt.time)
			}
			testkit.Equal(t, tt.without, strings.Join(m.Without, " "))
		})
	}
}

// Whatever a mode file contains: no panic, and accepted settings are valid for VRRP and format
// to the same text.
func FuzzParseModeFile(f *testing.F) {
	for _, s := range []string{
		"mode: unicast\nprofile: fast\n", "mode: multicast\ntime: 2026-05-02T03:00:00Z\n",
		"profile: custom\nversion: 2\nadvertInterval: 2s\n", "---\nmode: unicast\n", "mode: [", "time: 0001-01-01T00:00:00Z\nmode: unicast",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseModeFile(data)
		if err != nil {
			if m, err := err.Error(), len(err.Error()); err > 500 {
				t.Errorf("an error of %d bytes: %s", err, m)
			}
			return
		}
		text, err := m.Marshal()
		testkit.Must(testkit.In(t, data), err)
		if again, err := ParseModeFile(text); err != nil {
			t.Fatalf("%q is written as %q: %v", data, text, err)
		} else if again.Mode != m.Mode || again.Profile != m.Profile || again.Version != m.Version || again.AdvertInterval != m.AdvertInterval {
			t.Errorf("%q is written as %q", data, text)
		}
		v, err := m.Settings(&ClusterConfigSpec{VRRP: ClusterVRRP{Target: ClassicSettings(ModeUnicast)}})
		if err != nil {
			return
		}
		n := Node{Name: "node", Role: RoleMaster, VRRP: &v}
		testkit.Check(testkit.In(t, data, v), n.Validate().Err())
	})
}
