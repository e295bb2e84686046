package unnumbered

import (
	"net"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// TestAdvertise: no host takes a node for a default router, or addresses from it, and no other node
// takes it for a router.
func TestAdvertise(t *testing.T) {
	own := advertise(net.HardwareAddr{2, 0, 0, 0, 0, 1})
	testkit.Equal(t, "\x86\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\x02\x00\x00\x00\x00\x01\xfd\x01vipgen", string(own))
	testkit.Equal(t, "\x85\x00\x00\x00\x00\x00\x00\x00", string(solicit(nil)))
	header := own[:advertisementHeader]
	for name, tt := range map[string]struct {
		packet string
		want   bool
	}{
		"a node's":                    {string(own), false},
		"a router's":                  {string(header), true},
		"with options":                {string(own[:advertisementHeader+8]) + "\x05\x01\x00\x00\x00\x00\x05\xdc", true},
		"short":                       {string(header[1:]), false},
		"a solicitation":              {string(solicit(nil)) + "12345678", false},
		"another code":                {"\x86\x01" + string(header[2:]), false},
		"an option without a length":  {string(header) + "\x01\x00\x00\x00\x00\x00\x00\x00", false},
		"an option beyond the packet": {string(header) + "\x01\x02\x00\x00\x00\x00\x00\x00", false},
		"half an option":              {string(header) + "\x01", false},
	} {
		testkit.Equal(testkit.In(t, name), tt.want, sentByRouter([]byte(tt.packet)))
	}
}

// FuzzSentByRouter: any packet is judged without a panic, and one of a node is never a router's.
func FuzzSentByRouter(f *testing.F) {
	f.Add(advertise(nil))
	f.Add(advertise(nil)[:advertisementHeader])
	f.Fuzz(func(t *testing.T, b []byte) {
		if sentByRouter(b) && (len(b) < advertisementHeader || sentByRouter(append(b, node...))) {
			t.Errorf("%x is taken for a router's advertisement", b)
		}
	})
}
