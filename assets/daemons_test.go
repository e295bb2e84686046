package assets

import "testing"

func TestDaemonsOf(t *testing.T) {
	for release, want := range map[string][2]string{
		"": {"2.2", "2.1.5"}, "4.12": {"2.2", "2.1.5"}, "4.13.9": {"2.2", "2.1.5"}, "4.14": {"2.6", "2.1.5"},
		"4.15.0-rc.1": {"2.6", "2.1.5"}, "4.16": {"2.8", "2.2.8"}, "4.22": {"2.8", "2.2.8"}, "5.2": {"2.8", "2.2.8"},
	} {
		if d := DaemonsOf(release); d.HAProxy != want[0] || d.Keepalived[0] != want[1] {
			t.Errorf("%q: got %v, want %v", release, d, want)
		}
	}
}
