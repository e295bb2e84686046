package chaos

import (
	"testing"

	miekg "github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testkit"
)

// The number of mDNS records is as declared, and a packet of them can be parsed (RFC 6762
// section 17).
func TestMDNS(t *testing.T) {
	const largest = 9000
	for _, m := range mdnsKinds {
		list, err := m.packets(16)
		if err != nil || len(list) != 32 {
			t.Fatalf("%s: %d packets: %v", m.name, len(list), err)
		}
		seen := map[string]bool{}
		for _, p := range list {
			msg := new(miekg.Msg)
			if err := msg.Unpack(p.Data); err != nil || len(p.Data) > largest {
				t.Fatalf("%s: %d bytes: %v", m.name, len(p.Data), err)
			}
			if len(msg.Answer) != 3*m.hosts || msg.Answer[0].Header().Ttl != m.ttl || !msg.Response {
				t.Errorf("%s: %d records: %v", m.name, len(msg.Answer), msg.Answer[0])
			}
			seen[msg.Answer[0].Header().Name] = true
		}
		testkit.Equal(testkit.In(t, m.name), 16, len(seen))
	}
}
