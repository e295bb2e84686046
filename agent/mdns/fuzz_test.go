package mdns

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testkit"
)

// FuzzPacket feeds any message, twice and then its goodbye, to every reader.
func FuzzPacket(f *testing.F) {
	for _, msg := range []*dns.Msg{
		response(newRecords("master-1", testkit.Addrs("192.0.2.11", "2001:db8::11")), nil), goodbye(newRecords("master-0", nil)), flood(0, 20, 1<<32-1),
		newRecords("master-0", testkit.Addrs("192.0.2.66")).probe(), {Question: []dns.Question{question(service, dns.TypePTR), question("master-0.local.", dns.TypeANY)}},
	} {
		data, err := msg.Pack()
		testkit.Must(f, err)
		f.Add(data)
	}
	own := newRecords("master-0", testkit.Addrs("192.0.2.10", "2001:db8::10"))
	f.Fuzz(func(t *testing.T, data []byte) {
		msg := new(dns.Msg)
		if len(data) > maxMessage || msg.Unpack(data) != nil {
			return // the reader drops it
		}
		c := newCache()
		c.learn(response(own, nil), neighbour, epoch)
		for i := range 2 {
			now := epoch.Add(time.Duration(i) * time.Minute)
			c.learn(msg, neighbour, now)
			for _, h := range c.hosts(now) {
				if validateHost(h.Name) != nil || len(h.Addresses) == 0 || len(h.Addresses) > 2*maxSet {
					t.Errorf("%+v", h)
				}
			}
			if next := c.next(now.Add(time.Hour * 24)); next.After(now.Add(maxTTL)) {
				t.Errorf("a record lasts until %v after now", next.Sub(now))
			}
			c.missing(now)
			c.due(now, maxQuestions)
			c.knownInstances(now, maxRecords)
		}
		c.expire(epoch.Add(time.Minute + maxTTL))
		testkit.Equal(testkit.In(t, c), 0, len(c.all)+len(c.byID)+len(c.sets)+len(c.senders)+len(c.targets))
		if r := own.answer(msg); len(r.answers) > 0 {
			if _, err := pack(response(r.answers, r.extra)); err != nil {
				t.Error(err)
			}
		}
		own.loses(msg, nil)
		if e := own.conflict(packet{msg: msg}, nil, true); e != nil && e.Error() == "" {
			t.Error("a conflict with nothing")
		}
	})
}
