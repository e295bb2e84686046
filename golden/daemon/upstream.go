package daemon

import (
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/lab/netns"
)

// Upstream is a stand-in, for tests alone, for the name servers that a site
// has. It knows its records and no other name.
type Upstream struct {
	Address netip.Prefix // where it listens, on port 53
	Records []string     // as in a zone file: "www.example.org. 60 IN A 192.0.2.80"
}

// serve answers queries on a node of its own until the test ends.
func (u *Upstream) serve(t testing.TB, network *netns.Network) {
	t.Helper()
	zone := map[string][]dns.RR{}
	for _, line := range u.Records {
		record, err := dns.NewRR(line)
		if err != nil {
			t.Fatalf("upstream record %q: %v", line, err)
		}
		name := dns.CanonicalName(record.Header().Name)
		zone[name] = append(zone[name], record)
	}
	node, err := network.AddNode("upstream", u.Address)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := u.listen(node)
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range servers {
		server.Handler = answerFrom(zone)
		ended := make(chan struct{})
		ready := make(chan struct{})
		server.NotifyStartedFunc = func() { close(ready) }
		go func() {
			defer close(ended)
			if err := server.ActivateAndServe(); err != nil {
				t.Errorf("upstream: %v", err)
			}
		}()
		select {
		case <-ready:
		case <-ended:
			t.Fatal("the upstream does not start")
		}
		t.Cleanup(func() {
			server.Shutdown()
			<-ended
		})
	}
}

// listen opens the sockets for UDP and TCP.
func (u *Upstream) listen(node *netns.Node) ([]*dns.Server, error) {
	at := netip.AddrPortFrom(u.Address.Addr(), 53).String()
	var packets net.PacketConn
	var streams net.Listener
	err := node.Do(func() (err error) {
		if packets, err = net.ListenPacket("udp", at); err != nil {
			return err
		}
		streams, err = net.Listen("tcp", at)
		return err
	})
	return []*dns.Server{{PacketConn: packets}, {Listener: streams}}, err
}

// answerFrom returns a handler with NXDOMAIN for names that the zone lacks, and
// an empty answer for types that a name lacks.
func answerFrom(zone map[string][]dns.RR) dns.Handler {
	return dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetReply(query)
		question := query.Question[0]
		records, known := zone[dns.CanonicalName(question.Name)]
		if !known {
			reply.Rcode = dns.RcodeNameError
		}
		for _, record := range records {
			if record.Header().Rrtype == question.Qtype {
				reply.Answer = append(reply.Answer, record)
			}
		}
		w.WriteMsg(reply)
	})
}
