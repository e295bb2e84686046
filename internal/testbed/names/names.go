// Package names is a name server for tests and labs, in place of those of a site.
package names

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
)

// Serve starts a name server at port 53 of an address of a node, over UDP and TCP. It has the
// given records, in the format of a zone file, and no other name. kill ends it with its
// connections.
func Serve(node *netns.Node, addr netip.Addr, records ...string) (kill func(), err error) {
	zone := map[string][]dns.RR{}
	for _, line := range records {
		record, err := dns.NewRR(line)
		if err == nil && record == nil {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("record %q: %w", line, err)
		}
		name := dns.CanonicalName(record.Header().Name)
		zone[name] = append(zone[name], record)
	}
	return serveNames(node, netip.AddrPortFrom(addr, 53), answerFrom(zone))
}

func serveNames(node *netns.Node, at netip.AddrPort, handler dns.Handler) (kill func(), err error) {
	streams, err := process.ListenAt(node, at)
	if err != nil {
		return nil, err
	}
	var packets net.PacketConn
	err = node.Do(func() (err error) {
		packets, err = net.ListenPacket("udp", at.String())
		return err
	})
	if err != nil {
		streams.Kill()
		return nil, err
	}
	udp, tcp := &dns.Server{PacketConn: packets, Handler: handler}, &dns.Server{Listener: streams, Handler: handler}
	ended := make(chan struct{}, 2)
	for _, server := range []*dns.Server{udp, tcp} {
		go func() {
			server.ActivateAndServe() // until its socket is closed
			ended <- struct{}{}
		}()
	}
	return func() {
		streams.Kill()
		packets.Close()
		<-ended
		<-ended
	}, nil
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
