package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/companion/endpoint"
	"github.com/vipgen/vipgen/internal/lists"
)

type endpointFlags struct {
	ca, serverName, nameserver, path string
	pins                             []string
	timeout, expiresWithin           time.Duration
	ipv4, ipv6                       bool
}

func (a *app) checkEndpointCommand() *cobra.Command {
	var f endpointFlags
	var o command.Format
	c := &cobra.Command{
		Use:   "check-endpoint HOST[:PORT]",
		Short: "Diagnose an API endpoint: DNS, TCP, TLS, readiness",
		Long: `Resolve a name, connect to each of its addresses, and check the certificate (names,
chain, expiry) and /readyz. Print everything that is wrong, and what to do next.
Nothing secret is sent, and no credentials are needed. The default port is 6443.
Proxies are not used.

Exit code 0: no problem. 1: something is wrong.`,
		Example: `  vipgen check-endpoint api.demo.example.com --ca ca.crt

  # Before DNS has the name
  vipgen check-endpoint api.demo.example.com --resolve api.demo.example.com:6443:192.168.99.17

  # An address, with the name that clients have as tls-server-name
  vipgen check-endpoint 192.168.99.17:6443 --server-name api.demo.example.com

  # Ask the clients' name server
  vipgen check-endpoint api.demo.example.com --nameserver 192.168.99.53

  # For monitoring: exit code 1 also in the last week of the certificate
  vipgen check-endpoint api.demo.example.com --expires-within 168h -o json`,
		Args: command.Args(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := a.endpointTarget(args[0], &f)
			var bad problem.List
			switch {
			case errors.As(err, &bad):
				return bad
			case err != nil:
				return command.Usage(c, err)
			}
			return a.checkEndpoint(c.Context(), t, o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := c.Flags()
	flags.StringVar(&f.ca, "ca", "", "`file` with the CAs to trust, in PEM (default: those of this machine)")
	flags.StringVar(&f.serverName, "server-name", "", "`name` to send in the handshake and to check the certificate for (default: HOST)")
	flags.StringArrayVar(&f.pins, "resolve", nil, "resolve a name without DNS, as `HOST:PORT:ADDRESS[,ADDRESS]`, like curl's; repeatable")
	flags.StringVar(&f.nameserver, "nameserver", "", "`address[:port]` of a name server to ask (default: as this machine resolves names)")
	flags.StringVar(&f.path, "path", "/readyz", "readiness `path` of the server: /readyz, /livez, ...")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "`duration` that each step may take: DNS, TCP, TLS, HTTP")
	flags.DurationVar(&f.expiresWithin, "expires-within", 0, "report a certificate that expires within this `duration`")
	flags.BoolVarP(&f.ipv4, "ipv4", "4", false, "IPv4 addresses only")
	flags.BoolVarP(&f.ipv6, "ipv6", "6", false, "IPv6 addresses only")
	c.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	_ = c.MarkFlagFilename("ca", "crt", "pem", "cer")
	command.Complete(c, "path", "/readyz", "/livez", "/healthz")
	o.Add(c, "text", "json")
	return c
}

// endpointTarget parses argument and flags, and reports all invalid ones.
func (a *app) endpointTarget(host string, f *endpointFlags) (endpoint.Target, error) {
	t := endpoint.Target{Path: f.path, Timeout: f.timeout, ExpiresWithin: f.expiresWithin, IPv4: f.ipv4, IPv6: f.ipv6}
	var wrong []error
	note := func(flag string, err error) {
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s%w", flag, err))
		}
	}
	var err error
	t.Host, t.Port, err = endpoint.ParseHost(host)
	note("", err)
	if f.serverName != "" {
		t.ServerName, err = endpoint.ParseServerName(f.serverName)
		note("--server-name ", err)
	}
	for _, text := range f.pins {
		p, err := endpoint.ParsePin(text)
		note("--resolve ", err)
		t.Pinned = append(t.Pinned, p)
	}
	if f.nameserver != "" {
		t.Nameserver, err = endpoint.ParseNameserver(f.nameserver)
		note("--nameserver ", err)
	}
	if !strings.HasPrefix(f.path, "/") || strings.ContainsAny(f.path, "?# \t\n") {
		note("--path ", fmt.Errorf("%q: expected a path, such as /readyz or /livez", f.path))
	}
	if f.timeout <= 0 {
		note("--timeout ", fmt.Errorf("%v: expected a duration, such as 5s", f.timeout))
	}
	if f.expiresWithin < 0 {
		note("--expires-within ", fmt.Errorf("%v: expected a duration, such as 168h", f.expiresWithin))
	}
	if len(wrong) > 0 {
		return t, errors.Join(wrong...)
	}
	if f.ca == "" {
		return t, nil
	}
	data, err := a.File(f.ca)
	if err != nil {
		return t, err
	}
	if t.CAs, err = endpoint.ReadAuthorities(data); err != nil {
		return t, problem.List{{File: f.ca, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "certificates in PEM"}}
	}
	return t, nil
}

func (a *app) checkEndpoint(ctx context.Context, t endpoint.Target, o command.Format) error {
	if ctx == nil {
		ctx = context.Background()
	}
	r := endpoint.Check(ctx, t)
	err := show(a, o, r, func(p *printer, r *endpoint.Report) { endpointText(p, r, time.Now()) })
	return found(err, !r.OK)
}

func endpointText(p *printer, r *endpoint.Report, now time.Time) {
	p.line("%s, port %d", r.Host, r.Port)
	if len(r.DNS.Addresses) > 0 {
		p.line("  resolves to   %s (%s)", list(r.DNS.Addresses), resolvedBy(r.DNS))
	}
	for _, e := range r.Endpoints {
		p.line("")
		p.line("%s", e.Address)
		if !e.Connected {
			continue
		}
		p.line("  connected     in %s", command.Millis(max(e.ConnectMS, 1)))
		if e.TLS == "" {
			continue
		}
		p.line("  TLS           %s", strings.TrimPrefix(e.TLS, "TLS "))
		leaf := e.Chain[0]
		p.line("  certificate   %s", leaf.Subject)
		p.line("    for         %s", names(leaf))
		p.line("    name        %s: %s", r.ServerName, verdict(e.NameOK))
		p.line("    valid       %s to %s (%s): %s", day(leaf.NotBefore), day(leaf.NotAfter), validFor(leaf.NotAfter, now), verdict(e.TimeOK))
		issuers := slices.Compact(lists.Map(e.Chain, func(c endpoint.Certificate) string { return c.Issuer }))
		p.line("    from        %s: %s", strings.Join(issuers, ", from "), verdict(e.TrustOK))
		if y := e.Ready; y != nil {
			p.line("  %-13s HTTP %d", y.Path, y.Status)
		}
	}
	if len(r.Findings) == 0 {
		p.line("")
		p.line("No problem found.")
	}
	for i, f := range r.Findings {
		kind := "Wrong"
		if f.Note {
			kind = "Note"
		}
		p.line("")
		p.line("%s %d: %s [%s]", kind, i+1, f.What, f.Code)
		for _, line := range wrap("Next: "+f.Next+".", lineWidth) {
			p.line("  %s", line)
		}
	}
}

func resolvedBy(d endpoint.DNS) string {
	var by string
	switch d.By {
	case "address":
		by = "it is an address"
	case "system":
		by = "asked as this machine does"
	case "--resolve":
		by = "by --resolve"
	default:
		by = "says " + d.By
	}
	if d.CNAME != "" {
		by += ", an alias of " + d.CNAME
	}
	return by
}

func names(c endpoint.Certificate) string {
	all := slices.Concat(c.Names, lists.Map(c.Addresses, netip.Addr.String))
	return cmp.Or(strings.Join(all, ", "), "no name")
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "wrong"
}

func day(t time.Time) string { return t.Format(time.RFC3339) }

func validFor(until, now time.Time) string {
	d := until.Sub(now)
	switch {
	case d < 0:
		return "expired"
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours left", int(d.Hours()))
	}
	return fmt.Sprintf("%d days left", int(d.Hours()/24))
}
