package golden

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	nameserver "github.com/vipgen/vipgen/internal/testbed/names"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

const corefilePath = "/etc/coredns/Corefile"

// siteServer is a stand-in for the name servers of a site. It knows its records and no other
// name.
type siteServer struct {
	address netip.Prefix // where it listens, on port 53
	records []string     // as in a zone file: "www.example.org. 60 IN A 192.0.2.80"
}

// serve answers queries on a node of its own until the test ends.
func (s *siteServer) serve(t testing.TB, network *netns.Network) {
	t.Helper()
	node, err := network.AddNode("upstream", s.address)
	testkit.Must(t, err)
	kill, err := nameserver.Serve(node, s.address.Addr(), s.records...)
	testkit.Must(t, err)
	t.Cleanup(kill)
}

// coreDNS starts the real CoreDNS with a Corefile, on its own node with the given addresses
// where all ports are free, and returns once it is listening. files are the other files that
// the Corefile refers to, by their absolute paths on the node; site, if any, runs on another
// node, in a subnet of which this one needs an address. Queries go to port 53 of the node's
// first address, of loopback if it has none. A Corefile that CoreDNS does not start with fails
// the test.
func coreDNS(t testing.TB, corefile []byte, files map[string][]byte, addrs []netip.Prefix, site *siteServer) *resolver {
	t.Helper()
	network := daemon.NewNetwork(t)
	node, err := network.AddNode("coredns", addrs...)
	testkit.Must(t, err)
	if site != nil {
		site.serve(t, network)
	}
	const program = "/programs/coredns"
	host := daemon.NewHost(t, node)
	host.Bind(testkit.Tool(t, "coredns"), program)
	host.Write(corefilePath, corefile)
	for path, data := range files {
		host.Write(path, data)
	}
	r := &resolver{t: t, node: node, server: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 53)}
	if len(addrs) > 0 {
		r = r.at(addrs[0].Addr())
	}
	r.awaitListening(host.Start(nil, program, "-conf", corefilePath))
	return r
}

// resolver sends queries to one name server, from the server's node.
type resolver struct {
	t      testing.TB
	node   *netns.Node
	server netip.AddrPort
}

// answer is a name server's answer.
type answer struct {
	Rcode string // such as NOERROR or NXDOMAIN
	// Records holds the answer section, sorted, each as its type and data ("A
	// 192.0.2.5"), without the time to live, which a cache decrements.
	Records []string
}

// at returns a resolver that sends its queries to another address of the node.
func (r *resolver) at(addr netip.Addr) *resolver {
	other := *r
	other.server = netip.AddrPortFrom(addr, r.server.Port())
	return &other
}

// query returns the records of a type ("A", "AAAA", "PTR") for a name. A missing answer fails
// the test; an answer of any kind is returned.
func (r *resolver) query(name, qtype string) answer {
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
	out := answer{Rcode: dns.RcodeToString[reply.Rcode]}
	for _, record := range reply.Answer {
		header := record.Header()
		data := strings.TrimPrefix(record.String(), header.String())
		out.Records = append(out.Records, dns.TypeToString[header.Rrtype]+" "+data)
	}
	slices.Sort(out.Records)
	return out
}

// exchange sends a query, and repeats it while no program listens: CoreDNS opens its sockets
// one after the other, UDP after TCP, address after address.
func (r *resolver) exchange(network string, question *dns.Msg) (reply *dns.Msg, err error) {
	testkit.Await(r.t, "CoreDNS to listen on "+r.server.String()+" by "+network, func() bool {
		reply, err = r.ask(network, question)
		return !errors.Is(err, syscall.ECONNREFUSED)
	})
	return reply, err
}

func (r *resolver) ask(network string, question *dns.Msg) (*dns.Msg, error) {
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

// awaitListening returns when the server accepts connections, so that a server that does not
// start is distinguished from one that does not answer.
func (r *resolver) awaitListening(p *daemon.Process) {
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
