package mdns

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testkit"
)

// lines returns records in the format of a zone file, sorted.
func lines(rrs []dns.RR) []string {
	var out []string
	for _, rr := range rrs {
		out = append(out, strings.Join(strings.Fields(rr.String()), " "))
	}
	slices.Sort(out)
	return out
}

func parse(t *testing.T, all ...string) (out []dns.RR) {
	t.Helper()
	for _, line := range all {
		rr, err := dns.NewRR(line)
		testkit.Must(t, err)
		out = append(out, rr)
	}
	return out
}

func TestAnswer(t *testing.T) {
	const (
		a    = "master-0.local. 120 IN A 192.0.2.1"
		aaaa = "master-0.local. 120 IN AAAA 2001:db8::1"
		srv  = "master-0._workstation._tcp.local. 120 IN SRV 0 0 9 master-0.local."
		txt  = `master-0._workstation._tcp.local. 4500 IN TXT ""`
		ptr  = "_workstation._tcp.local. 4500 IN PTR master-0._workstation._tcp.local."
		meta = "_services._dns-sd._udp.local. 4500 IN PTR _workstation._tcp.local."
	)
	both, one := newRecords("master-0", testkit.Addrs("192.0.2.1", "2001:db8::1")), newRecords("master-0", testkit.Addrs("192.0.2.1"))
	for _, tt := range []struct {
		name    string
		records records
		ask     []string // name, type
		class   uint16
		known   []string
		answers []string
		extra   []string
		shared  bool
		unicast bool
	}{
		{name: "address", records: both, ask: []string{"master-0.local.", "A"}, answers: []string{a}, extra: []string{aaaa}},
		{name: "in capitals", records: both, ask: []string{"Master-0.LOCAL.", "AAAA"}, answers: []string{aaaa}, extra: []string{a}},
		{name: "everything", records: both, ask: []string{"master-0.local.", "ANY"}, answers: []string{a, aaaa}},
		{name: "missing family", records: one, ask: []string{"master-0.local.", "AAAA"},
			answers: []string{"master-0.local. 120 IN NSEC master-0.local. A"}},
		{name: "missing type", records: both, ask: []string{"master-0._workstation._tcp.local.", "A"},
			answers: []string{"master-0._workstation._tcp.local. 120 IN NSEC master-0._workstation._tcp.local. TXT SRV"}},
		{name: "service", records: both, ask: []string{"_workstation._tcp.local.", "PTR"}, shared: true,
			answers: []string{ptr}, extra: []string{srv, txt, a, aaaa}},
		{name: "services", records: both, ask: []string{"_services._dns-sd._udp.local.", "PTR"}, shared: true, answers: []string{meta}},
		{name: "instance", records: both, ask: []string{"master-0._workstation._tcp.local.", "SRV"}, answers: []string{srv}, extra: []string{a, aaaa}},
		{name: "known", records: both, ask: []string{"_workstation._tcp.local.", "PTR"},
			known: []string{"_workstation._tcp.local. 2250 IN PTR master-0._workstation._tcp.local."}},
		{name: "known for too short", records: both, ask: []string{"_workstation._tcp.local.", "PTR"}, shared: true,
			known:   []string{"_workstation._tcp.local. 2249 IN PTR master-0._workstation._tcp.local."},
			answers: []string{ptr}, extra: []string{srv, txt, a, aaaa}},
		{name: "two questions", records: both, ask: []string{"master-0.local.", "A", "master-0.local.", "AAAA"}, answers: []string{a, aaaa}},
		{name: "unicast", records: one, ask: []string{"master-0.local.", "A"}, class: dns.ClassINET | flush, unicast: true, answers: []string{a}},
		{name: "another's name", records: both, ask: []string{"master-1.local.", "A"}},
		{name: "longer name", records: both, ask: []string{"x.master-0.local.", "A"}},
		{name: "other class", records: both, ask: []string{"master-0.local.", "A"}, class: dns.ClassCHAOS},
		{name: "no type of the service", records: both, ask: []string{"_workstation._tcp.local.", "A"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			query := &dns.Msg{Answer: parse(t, tt.known...)}
			if tt.class == 0 {
				tt.class = dns.ClassINET
			}
			for i := 0; i < len(tt.ask); i += 2 {
				query.Question = append(query.Question, dns.Question{Name: tt.ask[i], Qtype: dns.StringToType[tt.ask[i+1]], Qclass: tt.class})
			}
			got := tt.records.answer(query)
			slices.Sort(tt.answers)
			slices.Sort(tt.extra)
			testkit.Equal(t, tt.answers, lines(got.answers))
			testkit.Equal(t, tt.extra, lines(got.extra))
			if got.shared != tt.shared || len(got.answers) > 0 && got.unicast != tt.unicast {
				t.Errorf("shared %t, unicast %t", got.shared, got.unicast)
			}
		})
	}
}

func TestGoodbye(t *testing.T) {
	r := newRecords("master-0", testkit.Addrs("192.0.2.1"))
	for _, rr := range goodbye(r.own()).Answer {
		if rr.Header().Ttl != 0 || rr.Header().Name == enumerated {
			t.Errorf("goodbye has %v", rr)
		}
	}
	for _, rr := range response(r, nil).Answer {
		shared := rr.Header().Rrtype == dns.TypePTR
		testkit.Equal(testkit.In(t, "cache-flush bit of", rr), !shared, rr.Header().Class&flush != 0)
	}
	if got := r[0].Header(); got.Ttl != hostTTL || got.Class != dns.ClassINET {
		t.Errorf("the records themselves were changed: %v", got)
	}
	msg := legacy(&dns.Msg{MsgHdr: dns.MsgHdr{Id: 7}, Question: []dns.Question{{Name: "master-0.local."}}}, reply{answers: r[:1]})
	if msg.Id != 7 || len(msg.Question) != 1 || msg.Answer[0].Header().Ttl != legacyTTL {
		t.Errorf("legacy response %v", msg)
	}
}

func TestValidateHost(t *testing.T) {
	for host, want := range map[string]bool{
		"master-0": true, "a": true, "0": true, strings.Repeat("a", 63): true,
		"": false, "a.b": false, "-a": false, "a-": false, "A": false, "a b": false, "ä": false, strings.Repeat("a", 64): false,
	} {
		testkit.Equal(testkit.In(t, host), want, validateHost(host) == nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a publisher that takes the name ends, too
	testkit.Fails(testkit.In(t, "a publisher of a.b"), (&publisher{Host: "a.b"}).run(ctx), "")
}

func TestConflict(t *testing.T) {
	mine, former := newRecords("master-0", testkit.Addrs("192.0.2.1")), newRecords("master-0", testkit.Addrs("192.0.2.7"))
	for _, tt := range []struct {
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
	} {
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
				testkit.Equal(testkit.In(t, "probing", probing, "conflict", got), want, got != nil)
				if got != nil && got.Theirs != tt.theirs {
					t.Errorf("theirs %q", got.Theirs)
				}
			}
		})
	}
}

// RFC 6762 section 8.2 has the first of these as its example.
func TestSimultaneousProbes(t *testing.T) {
	for _, tt := range []struct {
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
	} {
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
