package mdns

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestConflict(t *testing.T) {
	mine, former := newRecords("master-0", testkit.Addrs("192.0.2.1")), newRecords("master-0", testkit.Addrs("192.0.2.7"))
	tests := []struct {
		name             string
		theirs           string
		probing, settled bool // whether it is one
	}{
		{"mine", "master-0.local. 120 IN A 192.0.2.1", false, false},
		{"mine of before", "master-0.local. 120 IN A 192.0.2.7", false, false},
		{"other address", "master-0.local. 120 IN A 192.0.2.2", true, true},
		{"in capitals", "MASTER-0.local. 120 IN A 192.0.2.2", true, true},
		{"other type", "master-0.local. 120 IN AAAA 2001:db8::2", true, false},
		{"other target", "master-0._workstation._tcp.local. 120 IN SRV 0 0 9 other.local.", true, true},
		{"their goodbye", "master-0.local. 0 IN A 192.0.2.2", false, false},
		{"what they have not", "master-0.local. 120 IN NSEC master-0.local. A", false, false},
		{"shared name", "_workstation._tcp.local. 4500 IN PTR master-1._workstation._tcp.local.", false, false},
		{"other name", "master-1.local. 120 IN A 192.0.2.2", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			theirs := parse(t, tt.theirs)
			theirs[0].Header().Class |= flush
			in := packet{&dns.Msg{Answer: theirs}, netip.MustParseAddrPort("192.0.2.2:5353")}
			for _, probing := range []bool{true, false} {
				want := tt.settled
				if probing {
					want = tt.probing
				}
				got := mine.conflict(in, former, probing)
				if (got != nil) != want {
					t.Errorf("probing %t: conflict %v", probing, got)
				}
				if got != nil && got.Theirs != tt.theirs {
					t.Errorf("theirs %q", got.Theirs)
				}
			}
		})
	}
}

// RFC 6762 section 8.2 has the first of these as its example.
func TestSimultaneousProbes(t *testing.T) {
	tests := []struct {
		name         string
		mine, theirs []string
		loses        bool
	}{
		{"earlier address", []string{"169.254.99.200"}, []string{"169.254.200.50"}, true},
		{"later address", []string{"169.254.200.50"}, []string{"169.254.99.200"}, false},
		{"the same", []string{"192.0.2.1"}, []string{"192.0.2.1"}, false},
		{"fewer", []string{"192.0.2.1"}, []string{"192.0.2.1", "2001:db8::1"}, true},
		{"more", []string{"192.0.2.1", "2001:db8::1"}, []string{"192.0.2.1"}, false},
		{"type before data", []string{"192.0.2.200"}, []string{"2001:db8::1"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mine, theirs := newRecords("h", testkit.Addrs(tt.mine...)), newRecords("h", testkit.Addrs(tt.theirs...))
			testkit.Equal(t, tt.loses, mine.loses(theirs.probe(), nil))
			if mine.loses(theirs.probe(), theirs) {
				t.Error("loses to its own records")
			}
			if mine.loses(newRecords("other", testkit.Addrs("255.0.0.1")).probe(), nil) {
				t.Error("loses to another name's probe")
			}
		})
	}
}
