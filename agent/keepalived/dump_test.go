package keepalived

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
)

const dumped = `------< Global definitions >------
 Router ID = cp-1
------< VRRP Topology >------
 VRRP Instance = demo_API_0
   VRRP Version = 3
   State = BACKUP
   Master router = 192.0.2.2
   Master priority = 68
   Master advert int = 0.10 sec
   Priority = 40
 VRRP Instance = demo_INGRESS_0
   State = MASTER
   Master router = 192.0.2.1
   Master priority = 80
 VRRP Instance = demo_API_1
   State = BACKUP
   Master router = fe80::2%eth0
   Master priority = 65
 VRRP Instance = fresh
   State = BACKUP
   Master router = 0.0.0.0
   Master priority = 0
`

func TestParseDump(t *testing.T) {
	want := map[string]state.Holder{
		"demo_API_0": {Address: netip.MustParseAddr("192.0.2.2"), Priority: 68},
		"demo_API_1": {Address: netip.MustParseAddr("fe80::2"), Priority: 65},
	}
	if got := parseDump([]byte(dumped)); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseDump(f *testing.F) {
	f.Add([]byte(dumped))
	f.Add([]byte(" VRRP Instance = \n   State = BACKUP\n   Master router = ::\n   Master priority = 999\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, h := range parseDump(data) {
			if name == "" || !h.Address.IsValid() || h.Address.Zone() != "" || h.Priority < 0 || h.Priority > 255 {
				t.Errorf("%q: %+v", name, h)
			}
		}
	})
}
