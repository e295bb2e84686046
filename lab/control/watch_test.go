package control

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// Readings are a tenth of a second apart.
func TestHolders(t *testing.T) {
	for _, tt := range []struct {
		name, looks string // holders by reading
		events      []string
		failover    *Failover
	}{
		{"first", "- a a", []string{"a has it"}, nil},
		{"failover", "a - - - b", []string{"a has it", "no node has it, a had it before", "b has it, from a, 300ms without a holder"}, &Failover{From: "a", To: "b", WithoutHolderMS: 300}},
		{"lost and back", "a - a", []string{"a has it", "no node has it, a had it before", "a has it, back, 100ms without a holder"}, &Failover{From: "a", To: "a", WithoutHolderMS: 100}},
		{"handover", "a b", []string{"a has it", "b has it, taken over from a"}, &Failover{From: "a", To: "b"}},
		{"both for a moment", "a a+b b", []string{"a has it", "b has it, taken over from a"}, &Failover{From: "a", To: "b"}},
		{"both", "a a+b a+b b", []string{"a has it", "SPLIT BRAIN, a and b", "b has it, taken over from a"}, &Failover{From: "a", To: "b"}},
		{"both, and back", "a a+b a+b a", []string{"a has it", "SPLIT BRAIN, a and b", "a has it alone again"}, nil},
		{"routed", "a a+b b -", []string{"routers send to a", "routers send to a, b", "routers send to b", "routers send to none"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := watchedVIP{VIP: VIP{Routed: tt.name == "routed", Address: netip.MustParseAddr("192.0.2.5"), Holders: []string{}}}
			var events []string
			log := func(format string, args ...any) {
				events = append(events, strings.TrimPrefix(fmt.Sprintf(format, args...), "192.0.2.5: "))
			}
			now := time.Now()
			for look := range strings.FieldsSeq(tt.looks) {
				holders := []string{}
				if look != "-" {
					holders = strings.Split(look, "+")
				}
				s.observe(holders, now, log)
				now = now.Add(100 * time.Millisecond)
			}
			testkit.Equal(t, tt.events, events)
			if s.Failover != nil {
				s.Failover.At = time.Time{}
			}
			testkit.Equal(t, tt.failover, s.Failover)
		})
	}
}

func TestHolderInWords(t *testing.T) {
	for want, holders := range map[string][]string{"none": nil, "a": {"a"}, "SPLIT BRAIN: a, b": {"a", "b"}} {
		testkit.Equal(testkit.In(t, holders), want, (VIP{Holders: slices.Clone(holders)}).Holder())
	}
}
