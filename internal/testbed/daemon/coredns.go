package daemon

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

const corefilePath = "/etc/coredns/Corefile"

// DNSOption changes the surroundings of a CoreDNS.
type DNSOption func(*dnsOptions)

type dnsOptions struct {
	addrs    []netip.Prefix
	upstream *Upstream
}

// WithAddresses sets the addresses of CoreDNS's node, such as those that its
// Corefile binds to. Queries go to the first of them.
func WithAddresses(addrs ...netip.Prefix) DNSOption {
	return func(o *dnsOptions) { o.addrs = append(o.addrs, addrs...) }
}

// WithUpstream puts a stand-in for the site's name servers on the network, for
// the Corefile to forward to. The node needs an address in its subnet.
func WithUpstream(u Upstream) DNSOption {
	return func(o *dnsOptions) { o.upstream = &u }
}

// CoreDNS starts the real CoreDNS with a Corefile, on a node of its own where
// all ports are free, and returns once it is listening. files are what else the
// Corefile refers to, by their absolute paths on the node.
//
// Queries go to port 53 of the node's first address, of loopback if it has
// none. A Corefile that CoreDNS does not start with fails the test.
func CoreDNS(t testing.TB, corefile []byte, files map[string][]byte, options ...DNSOption) *Resolver {
	t.Helper()
	coredns := testkit.Tool(t, "coredns")
	var o dnsOptions
	for _, option := range options {
		option(&o)
	}
	network := NewNetwork(t)
	node, err := network.AddNode("coredns", o.addrs...)
	testkit.Must(t, err)
	if o.upstream != nil {
		o.upstream.serve(t, network)
	}

	s := newSandbox(t)
	s.write(t, corefilePath, corefile)
	for path, data := range files {
		s.write(t, path, data)
	}
	r := &Resolver{t: t, node: node, server: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 53)}
	if len(o.addrs) > 0 {
		r = r.At(o.addrs[0].Addr())
	}
	p := start(t, "CoreDNS", s.command(context.Background(), node, s.addProgram(t, coredns), "-conf", corefilePath))
	r.awaitListening(p)
	return r
}

// Resolver asks one name server, from the node that it runs on.
type Resolver struct {
	t      testing.TB
	node   *netns.Node
	server netip.AddrPort
}

// Answer is a name server's answer.
type Answer struct {
	Rcode string // such as NOERROR or NXDOMAIN
	// Records are the answer section's, sorted, each as its type and data
	// ("A 192.0.2.5"): without the time to live, which runs down in a cache.
	Records []string
}

// At returns a resolver that sends its queries to another address of the node.
func (r *Resolver) At(addr netip.Addr) *Resolver {
	other := *r
	other.server = netip.AddrPortFrom(addr, r.server.Port())
	return &other
}

// Query asks for the records of a type ("A", "AAAA", "PTR") that a name has.
// That no answer comes fails the test; an answer of any kind is returned.
func (r *Resolver) Query(name, qtype string) Answer {
	r.t.Helper()
	kind, ok := dns.StringToType[qtype]
	if !ok {
		r.t.Fatalf("no DNS record type %q", qtype)
	}
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	reply, err := r.exchange("udp", question)
	if err == nil && reply.Truncated {
		reply, err = r.exchange("tcp", question)
	}
	if err != nil {
		r.t.Fatalf("asking %v for %s %s: %v", r.server, name, qtype, err)
	}
	answer := Answer{Rcode: dns.RcodeToString[reply.Rcode]}
	for _, record := range reply.Answer {
		header := record.Header()
		data := strings.TrimPrefix(record.String(), header.String())
		answer.Records = append(answer.Records, dns.TypeToString[header.Rrtype]+" "+data)
	}
	slices.Sort(answer.Records)
	return answer
}

// exchange asks once, and again while nobody listens: CoreDNS opens its sockets
// one after the other, UDP after TCP, address after address.
func (r *Resolver) exchange(network string, question *dns.Msg) (reply *dns.Msg, err error) {
	testkit.Await(r.t, "CoreDNS to listen on "+r.server.String()+" by "+network, func() bool {
		reply, err = r.ask(network, question)
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
	return reply, err
}

func (r *Resolver) ask(network string, question *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: network, Timeout: testkit.Patience}
	var conn *dns.Conn
	err := r.node.Do(func() (err error) {
		conn, err = client.Dial(r.server.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	reply, _, err := client.ExchangeWithConn(question, conn)
	return reply, err
}

// awaitListening returns when the server takes connections, so that one which
// does not start is told from one that does not answer.
func (r *Resolver) awaitListening(p *process.Process) {
	r.t.Helper()
	testkit.Await(r.t, "CoreDNS to listen on "+r.server.String(), func() bool {
		if p.Ended() {
			r.t.Fatalf("CoreDNS does not start:\n%s", p.Output())
		}
		return r.node.Do(func() error {
			conn, err := net.DialTimeout("tcp", r.server.String(), time.Second)
			if err == nil {
				conn.Close()
			}
			return err
		}) == nil
	})
}
