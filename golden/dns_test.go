package golden

import (
	"bytes"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	nameserver "github.com/vipgen/vipgen/internal/testbed/names"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// The site's name servers answer every name with these, including the cluster's own: a
// forwarded query is recognised by its answer.
const (
	elsewhere     = "A 203.0.113.99"
	elsewhere6    = "AAAA 2001:db8:bad::99"
	elsewhereBack = "PTR elsewhere.example.net."
)

// TestNames starts each node's CoreDNS and queries all names.
func TestNames(t *testing.T) {
	testkit.Live(t)
	for _, c := range allCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checkCoreDNS(t, c, c.result(t))
		})
	}
}

func checkCoreDNS(t *testing.T, c clusterCase, r result) {
	s := &r.cluster(t).Spec
	eachNode(t, r, v1alpha1.Corefile, func(t *testing.T, name string, corefile []byte) {
		n := c.facts(t, r, name)
		own, foreign := ownNames(s, n), foreignNames(s, n)
		known := slices.Concat(slices.Collect(maps.Keys(own)), foreign)
		back, foreignBack := reverseNames(s, n)
		for _, a := range slices.Concat(slices.Collect(maps.Keys(back)), foreignBack) {
			known = append(known, arpa(t, a))
		}
		dns, addresses, upstream := startCoreDNS(t, n, corefile, r.previews[name][v1alpha1.HostsFile[1:]], known)
		askOwn(t, dns, own)
		askForeign(t, dns, foreign, upstream)
		askReverse(t, dns, back, foreignBack, upstream)
		api := "api." + s.Domain
		if len(own[api]) == 0 { // which is then the site's
			api = n.Name + "." + s.Domain
		}
		for _, a := range addresses {
			ask(t, dns.at(a), strings.ToUpper(api), "A", answer{Rcode: "NOERROR", Records: typed(own[api], "A")})
		}
	})
}

// startCoreDNS runs the real CoreDNS on a node with the addresses of its facts, and with the
// first of its upstreams reachable, if it has one: on another node, which answers all known
// names. It returns the addresses to query.
func startCoreDNS(t *testing.T, n *v1alpha1.Node, corefile, hosts []byte, known []string) (dns *resolver, at []netip.Addr, upstream bool) {
	t.Helper()
	var prefixes []netip.Prefix
	for _, i := range n.Interfaces {
		prefixes = append(prefixes, i.Addresses...)
	}
	at = testkit.Addrs("127.0.0.1")
	if !n.NoIPv6 {
		at = append(at, netip.IPv6Loopback())
	}
	for _, p := range prefixes {
		at = append(at, p.Addr())
	}
	network := daemon.NewNetwork(t)
	a, upstream := forwardsTo(t, corefile)
	if upstream {
		where := netip.PrefixFrom(a, a.BitLen()-8)
		if i := slices.IndexFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) }); i >= 0 {
			where = netip.PrefixFrom(a, prefixes[i].Bits())
		} else {
			prefixes = append(prefixes, netip.PrefixFrom(a.Next(), where.Bits()))
		}
		serveSite(t, network, where, known)
	}
	node, err := network.AddNode("coredns", prefixes...)
	testkit.Must(t, err)
	host := daemon.NewHost(t, node)
	host.Bind(testkit.Tool(t, "coredns"), "/coredns")
	host.Write(v1alpha1.Corefile, corefile)
	host.Write(v1alpha1.HostsFile, hosts)
	process := host.Start(nil, "/coredns", "-conf", v1alpha1.Corefile)
	dns = &resolver{t: t, node: node, process: process, server: at[0]}
	if len(prefixes) > 0 {
		dns = dns.at(prefixes[0].Addr())
	}
	return dns, at, upstream
}

// forwardsTo finds the first address that a Corefile forwards to.
func forwardsTo(t *testing.T, corefile []byte) (netip.Addr, bool) {
	t.Helper()
	for line := range bytes.Lines(corefile) {
		if f := strings.Fields(string(line)); len(f) > 2 && f[0] == "forward" {
			a, err := netip.ParseAddr(f[2])
			testkit.Must(t, err)
			return a, true
		}
	}
	return netip.Addr{}, false
}

// serveSite answers queries for every known name with the foreign answers, on a node of its own.
func serveSite(t *testing.T, network *netns.Network, at netip.Prefix, known []string) {
	t.Helper()
	var records []string
	slices.Sort(known)
	for _, name := range slices.Compact(known) {
		for _, record := range []string{elsewhere, elsewhere6, "MX 10 mail.example.net.", `TXT "elsewhere"`, "HTTPS 1 .", elsewhereBack} {
			records = append(records, name+". 60 IN "+record)
		}
	}
	node, err := network.AddNode("upstream", at)
	testkit.Must(t, err)
	kill, err := nameserver.Serve(node, at.Addr(), records...)
	testkit.Must(t, err)
	t.Cleanup(kill)
}

func ask(t *testing.T, dns *resolver, name, qtype string, want answer) {
	t.Helper()
	testkit.Equal(testkit.In(t, name, qtype), want, dns.query(name, qtype))
}

// askOwn: a family or type that a name lacks is an empty answer, neither NXDOMAIN nor a query
// to another server.
func askOwn(t *testing.T, dns *resolver, own names) {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		for _, qtype := range []string{"A", "AAAA", "MX", "TXT", "HTTPS"} {
			want := answer{Rcode: "NOERROR"}
			if qtype == "A" || qtype == "AAAA" {
				want.Records = typed(own[name], qtype)
			}
			ask(t, dns, name, qtype, want)
		}
	}
}

// askForeign: all other names are forwarded upstream. Without an upstream the server answers
// SERVFAIL, so that the client tries the next server.
func askForeign(t *testing.T, dns *resolver, foreign []string, upstream bool) {
	want := map[string]answer{
		"A":    {Rcode: "NOERROR", Records: []string{elsewhere}},
		"AAAA": {Rcode: "NOERROR", Records: []string{elsewhere6}},
	}
	if !upstream {
		want = map[string]answer{"A": {Rcode: "SERVFAIL"}, "AAAA": {Rcode: "SERVFAIL"}}
	}
	for _, name := range foreign {
		for _, qtype := range slices.Sorted(maps.Keys(want)) {
			ask(t, dns, name, qtype, want[qtype])
		}
	}
}

// askReverse: addresses of nodes and API VIPs resolve to their names, all others are forwarded
// upstream.
func askReverse(t *testing.T, dns *resolver, own map[netip.Addr][]string, foreign []netip.Addr, upstream bool) {
	for a, names := range own {
		want := answer{Rcode: "NOERROR"}
		for _, name := range names {
			want.Records = append(want.Records, "PTR "+name+".")
		}
		slices.Sort(want.Records)
		ask(t, dns, arpa(t, a), "PTR", want)
	}
	want := answer{Rcode: "NOERROR", Records: []string{elsewhereBack}}
	if !upstream {
		want = answer{Rcode: "SERVFAIL"}
	}
	for _, a := range foreign {
		ask(t, dns, arpa(t, a), "PTR", want)
	}
}

// arpa returns the reverse name of an address, without the last dot.
func arpa(t *testing.T, a netip.Addr) string {
	t.Helper()
	name, err := dns.ReverseAddr(a.String())
	testkit.Must(t, err)
	return strings.TrimSuffix(name, ".")
}

// resolver sends queries to port 53 of an address of a name server, from the server's node.
type resolver struct {
	t       testing.TB
	node    *netns.Node
	process *daemon.Process
	server  netip.Addr
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
	other.server = addr
	return &other
}

// query returns the records of a type ("A", "AAAA", "PTR") for a name. A missing answer fails
// the test; an answer of any kind is returned.
func (r *resolver) query(name, qtype string) answer {
	r.t.Helper()
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.StringToType[qtype])
	reply := r.exchange("udp", question)
	if reply.Truncated {
		reply = r.exchange("tcp", question)
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

// exchange sends a query, and repeats it until the server listens: CoreDNS opens its sockets
// one after the other, UDP after TCP, address after address. One that does not start fails the
// test.
func (r *resolver) exchange(network string, question *dns.Msg) (reply *dns.Msg) {
	r.t.Helper()
	client := &dns.Client{Net: network, Timeout: testkit.Patience}
	testkit.Await(r.t, "CoreDNS to listen on "+r.server.String()+" by "+network, func() bool {
		if r.process.Ended() {
			r.t.Fatalf("CoreDNS does not start:\n%s", r.process.Output())
		}
		err := r.node.Do(func() (err error) {
			reply, _, err = client.Exchange(question, netip.AddrPortFrom(r.server, 53).String())
			return err
		})
		if err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			r.t.Fatalf("asking %v for %v: %v", r.server, question.Question, err)
		}
		return err == nil
	})
	return reply
}
