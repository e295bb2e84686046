package vrrp

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// The times of RFC 9568 and RFC 3768, section 6.1, derived by hand.
func TestDownInterval(t *testing.T) {
	tests := []struct {
		version  int
		interval time.Duration
		priority int
		want     time.Duration
	}{
		{3, 40 * time.Millisecond, 68, 149375 * time.Microsecond},
		{3, 200 * time.Millisecond, 80, 737500 * time.Microsecond},
		{2, time.Second, 68, 3734375 * time.Microsecond},
		{2, 2 * time.Second, 68, 6734375 * time.Microsecond},
		{3, time.Second, 0, 4 * time.Second},
	}
	for _, tt := range tests {
		if got := DownInterval(tt.version, tt.interval, tt.priority); got != tt.want || got > LongestDownInterval(tt.interval) {
			t.Errorf("version %d, %v, priority %d: %v, want %v", tt.version, tt.interval, tt.priority, got, tt.want)
		}
	}
}

// The virtual profile's promise, derived from RFC 9568 section 6.1 for every priority of a
// backup: a holder that stalls just before its next advertisement, and sends it afterwards, is
// in time; a dead one is replaced well within a second.
func TestVirtualToleratesStalls(t *testing.T) {
	most := BootstrapPriority
	for _, role := range []v1alpha1.GroupRole{v1alpha1.GroupAPI, v1alpha1.GroupIngress, v1alpha1.GroupDNS} {
		most = max(most, FullPriority(&v1alpha1.Group{Name: "x", Role: role}, v1alpha1.RoleMaster))
	}
	const interval = v1alpha1.VirtualIntervalMS * time.Millisecond
	for priority := IngressPriority; priority <= most; priority++ {
		down := DownInterval(3, interval, priority)
		if stall := down - interval; stall < (v1alpha1.VirtualStallMS+30)*time.Millisecond {
			t.Errorf("a backup of priority %d takes over from a holder that is paused for %v", priority, stall)
		}
		if down > 800*time.Millisecond {
			t.Errorf("a backup of priority %d waits %v for a dead holder", priority, down)
		}
	}
}

func TestPacedInterval(t *testing.T) {
	tests := []struct{ ms, receivers, version, want int }{
		{100, 0, 3, 100},
		{100, 2, 3, 100},
		{100, 200, 3, 100},
		{100, 201, 3, 110},
		{100, 2000, 3, 1000},
		{100, 2001, 3, 1010},
		{10, 20, 3, 10},
		{10, 21, 3, 20},
		{1000, 2, 2, 1000},
		{1000, 2000, 2, 1000},
		{1000, 2001, 2, 2000},
		{100, 2, 2, 1000}, // version 2 has whole seconds only
		{105, 1, 3, 110},
	}
	for _, tt := range tests {
		got := PacedInterval(tt.ms, tt.receivers, tt.version)
		if got != tt.want {
			t.Errorf("PacedInterval(%d, %d, %d) = %d, want %d", tt.ms, tt.receivers, tt.version, got, tt.want)
		}
		if tt.receivers*1000 > MaxAdvertsPerSecond*got {
			t.Errorf("%+v: more than %d adverts a second", tt, MaxAdvertsPerSecond)
		}
		if v1alpha1.AdvertInterval(tt.version, time.Duration(got)*time.Millisecond) != "" {
			t.Errorf("%+v: VRRPv%d cannot carry %d ms", tt, tt.version, got)
		}
	}
}
