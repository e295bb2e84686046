package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/internal/lists"
)

// resolve returns the addresses of a target, in a fixed order.
func (t *Target) resolve(ctx context.Context) (DNS, *Finding) {
	ctx, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	d, finding := t.ask(ctx)
	slices.SortFunc(d.Addresses, netip.Addr.Compare)
	d.Addresses = slices.Compact(d.Addresses)
	found := len(d.Addresses)
	d.Addresses = slices.DeleteFunc(d.Addresses, func(a netip.Addr) bool { return t.IPv4 && !a.Is4() || t.IPv6 && a.Is4() })
	if d.Addresses == nil {
		d.Addresses = []netip.Addr{}
	}
	if finding == nil && len(d.Addresses) == 0 {
		what := fmt.Sprintf("%s has no address", t.Host)
		if found > 0 {
			what += " of the requested family"
		}
		finding = &Finding{Code: codeNoSuchName, What: what, Next: t.nameNext()}
	}
	return d, finding
}

func (t *Target) ask(ctx context.Context) (DNS, *Finding) {
	for _, p := range t.Pinned {
		if p.Port == t.Port && (p.Host == t.Host || p.Host == "*") {
			return DNS{By: "--resolve", Addresses: slices.Clone(p.Addresses)}, nil
		}
	}
	if a, err := netip.ParseAddr(t.Host); err == nil {
		return DNS{By: "address", Addresses: []netip.Addr{a}}, nil
	}
	if t.Nameserver.IsValid() {
		return t.askNameserver(ctx)
	}
	return t.askSystem(ctx)
}

// askSystem resolves as programs on this machine do: /etc/hosts, then DNS.
func (t *Target) askSystem(ctx context.Context) (DNS, *Finding) {
	d := DNS{By: "system"}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", t.Host)
	d.Addresses = append(d.Addresses, lists.Map(addrs, netip.Addr.Unmap)...)
	var failed *net.DNSError
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, &failed) && failed.IsNotFound:
		return d, &Finding{Code: codeNoSuchName, What: t.Host + " does not resolve", Next: t.nameNext()}
	default:
		return d, &Finding{Code: codeNoDNS, What: fmt.Sprintf("this machine's resolver does not answer for %s: %v", t.Host, err),
			Next: "see /etc/resolv.conf of this machine, and whether its name servers answer: the same command with --nameserver ADDRESS"}
	}
}

func (t *Target) askNameserver(ctx context.Context) (DNS, *Finding) {
	d := DNS{By: t.Nameserver.String()}
	rcode := dns.RcodeSuccess
	for _, kind := range []uint16{dns.TypeA, dns.TypeAAAA} {
		reply, err := t.exchange(ctx, new(dns.Msg).SetQuestion(dns.Fqdn(t.Host), kind))
		if err != nil {
			return d, &Finding{Code: codeNoDNS, What: fmt.Sprintf("the name server %s does not answer: %v", t.Nameserver, plain(err)),
				Next: "see that its address is right, that it runs, and that UDP and TCP port " + fmt.Sprint(t.Nameserver.Port()) + " get there"}
		}
		rcode = max(rcode, reply.Rcode)
		for _, record := range reply.Answer {
			d.addRecord(record, t.Host)
		}
	}
	switch {
	case len(d.Addresses) > 0, rcode == dns.RcodeSuccess:
		return d, nil
	case rcode == dns.RcodeNameError:
		return d, &Finding{Code: codeNoSuchName, What: fmt.Sprintf("%s does not exist, according to %s", t.Host, t.Nameserver), Next: t.nameNext()}
	default:
		return d, &Finding{Code: codeNoDNS, What: fmt.Sprintf("the name server %s answers %s for %s", t.Nameserver, dns.RcodeToString[rcode], t.Host),
			Next: "see its log; REFUSED: it does not answer this client, or for this domain; SERVFAIL: its own upstream fails"}
	}
}

// exchange queries by UDP, and by TCP for truncated answers.
func (t *Target) exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
	question.SetEdns0(1232, false)
	reply, _, err := (&dns.Client{Timeout: t.Timeout}).ExchangeContext(ctx, question, t.Nameserver.String())
	if err == nil && reply.Truncated {
		reply, _, err = (&dns.Client{Net: "tcp", Timeout: t.Timeout}).ExchangeContext(ctx, question, t.Nameserver.String())
	}
	return reply, err
}

func (d *DNS) addRecord(record dns.RR, host string) {
	switch record := record.(type) {
	case *dns.A:
		if a, ok := netip.AddrFromSlice(record.A); ok {
			d.Addresses = append(d.Addresses, a.Unmap())
		}
	case *dns.AAAA:
		if a, ok := netip.AddrFromSlice(record.AAAA); ok {
			d.Addresses = append(d.Addresses, a)
		}
	case *dns.CNAME:
		if strings.EqualFold(record.Hdr.Name, dns.Fqdn(host)) {
			d.CNAME = strings.TrimSuffix(record.Target, ".")
		}
	}
}

func (t *Target) nameNext() string {
	return fmt.Sprintf("give %s its address in the DNS that clients use, or in their /etc/hosts; to continue without: --resolve %s:%d:ADDRESS", t.Host, t.Host, t.Port)
}
