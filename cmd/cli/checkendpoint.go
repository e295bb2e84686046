package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/cmd/endpoint"
)

// endpointFlags are those of `vipgen check-endpoint`, as written.
type endpointFlags struct {
	ca, serverName, nameserver, path string
	pins                             []string
	timeout, expiresWithin           time.Duration
	ipv4, ipv6                       bool
}

func (a *app) checkEndpointCommand() *cobra.Command {
	var f endpointFlags
	var o outputFlag
	c := &cobra.Command{
		Use:   "check-endpoint HOST[:PORT]",
		Short: "Look at a way to the API as clients do, and say what of it is wrong",
		Long: `Resolve a name, connect to each of its addresses, and look at the certificate (names,
chain, expiry) and at /readyz. Everything that is wrong is said, each with what to do
next. Nothing secret is sent, and no credentials are needed. The port is 6443 unless
given. Proxies are not used.

Exit code 0: all is well. 1: something is wrong.`,
		Example: `  vipgen check-endpoint api.demo.example.com --ca ca.crt

  # Before DNS knows the address
  vipgen check-endpoint api.demo.example.com --resolve api.demo.example.com:6443:192.168.99.17

  # An address, with the name that clients have as tls-server-name
  vipgen check-endpoint 192.168.99.17:6443 --server-name api.demo.example.com

  # As a name server of the clients has it
  vipgen check-endpoint api.demo.example.com --nameserver 192.168.99.53

  # For monitoring: exit code 1 in the last week of the certificate, too
  vipgen check-endpoint api.demo.example.com --expires-within 168h -o json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := a.endpointTarget(args[0], &f)
			var bad problem.List
			switch {
			case errors.As(err, &bad):
				return bad
			case err != nil:
				return usage(c, err)
			}
			return a.checkEndpoint(c.Context(), t, o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := c.Flags()
	flags.StringVar(&f.ca, "ca", "", "`file` with the CAs to trust, in PEM (default: those of this machine)")
	flags.StringVar(&f.serverName, "server-name", "", "`name` that the certificate has to be for, and is asked for (default: HOST)")
	flags.StringArrayVar(&f.pins, "resolve", nil, "take `HOST:PORT:ADDRESS[,ADDRESS]` without asking, as curl does; again for another")
	flags.StringVar(&f.nameserver, "nameserver", "", "`address[:port]` of a name server to ask (default: what this machine asks, /etc/hosts first)")
	flags.StringVar(&f.path, "path", "/readyz", "`path` at which the server says whether it is ready: /readyz, /livez, ...")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Second, "`time` for each step: name, connection, handshake, answer")
	flags.DurationVar(&f.expiresWithin, "expires-within", 0, "a certificate that ends within this `time` is wrong, too")
	flags.BoolVarP(&f.ipv4, "ipv4", "4", false, "IPv4 addresses only")
	flags.BoolVarP(&f.ipv6, "ipv6", "6", false, "IPv6 addresses only")
	c.MarkFlagsMutuallyExclusive("ipv4", "ipv6")
	_ = c.MarkFlagFilename("ca", "crt", "pem", "cer")
	complete(c, "path", "/readyz", "/livez", "/healthz")
	o.add(c, "text", "json")
	return c
}

// endpointTarget reads argument and flags, and tells of all that are wrong.
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
		note("--timeout ", fmt.Errorf("%v: expected a time, such as 5s", f.timeout))
	}
	if f.expiresWithin < 0 {
		note("--expires-within ", fmt.Errorf("%v: expected a time, such as 168h", f.expiresWithin))
	}
	if len(wrong) > 0 {
		return t, errors.Join(wrong...)
	}
	if f.ca == "" {
		return t, nil
	}
	data, err := a.readFile(f.ca)
	if err != nil {
		return t, err
	}
	if t.CAs, err = endpoint.ReadAuthorities(data); err != nil {
		return t, problem.List{{File: f.ca, Severity: problem.Error, Code: problem.Syntax, Found: err.Error(), Expected: "certificates in PEM"}}
	}
	return t, nil
}

func (a *app) checkEndpoint(ctx context.Context, t endpoint.Target, o outputFlag) error {
	if ctx == nil {
		ctx = context.Background()
	}
	r := endpoint.Check(ctx, t)
	var err error
	if o == "json" {
		err = a.printJSON(r)
	} else {
		_, err = fmt.Fprint(a.out, endpointText(r, time.Now()))
	}
	if err == nil && !r.OK {
		return errFinding
	}
	return err
}

// endpointText lays a report out for a person.
func endpointText(r *endpoint.Report, now time.Time) string {
	var b strings.Builder
	// What a server or a name server sends is not obeyed by the terminal.
	say := func(format string, args ...any) { b.WriteString(safeLine(fmt.Sprintf(format, args...)) + "\n") }
	gap := func() { b.WriteByte('\n') }
	say("%s, port %d", r.Host, r.Port)
	if len(r.DNS.Addresses) > 0 {
		say("  resolves to   %s (%s)", addresses(r.DNS.Addresses), resolvedBy(r.DNS))
	}
	for _, e := range r.Endpoints {
		gap()
		say("%s", e.Address)
		if !e.Connected {
			continue
		}
		say("  connected     in %d ms", e.ConnectMS)
		if e.TLS == "" {
			continue
		}
		say("  TLS           %s", strings.TrimPrefix(e.TLS, "TLS "))
		leaf := e.Chain[0]
		say("  certificate   %s", leaf.Subject)
		say("    for         %s", names(leaf))
		say("    name        %s: %s", r.ServerName, verdict(e.NameOK))
		say("    valid       %s to %s (%s): %s", day(leaf.NotBefore), day(leaf.NotAfter), left(leaf.NotAfter, now), verdict(e.TimeOK))
		say("    from        %s: %s", issuers(e.Chain), verdict(e.TrustOK))
		if y := e.Ready; y != nil {
			say("  %-13s HTTP %d", y.Path, y.Status)
		}
	}
	if len(r.Findings) == 0 {
		gap()
		say("All is well.")
	}
	for i, f := range r.Findings {
		kind := "Wrong"
		if f.Note {
			kind = "Note"
		}
		gap()
		say("%s %d: %s [%s]", kind, i+1, f.What, f.Code)
		for _, line := range wrap("Next: "+f.Next+".", lineWidth) {
			say("  %s", line)
		}
	}
	return b.String()
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
	list := slices.Clone(c.Names)
	for _, a := range c.Addresses {
		list = append(list, a.String())
	}
	if len(list) == 0 {
		return "no name"
	}
	return strings.Join(list, ", ")
}

// issuers are those of the chain, the nearest first.
func issuers(chain []endpoint.Certificate) string {
	var list []string
	for _, c := range chain {
		if len(list) == 0 || list[len(list)-1] != c.Issuer {
			list = append(list, c.Issuer)
		}
	}
	return strings.Join(list, ", from ")
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "wrong"
}

func day(t time.Time) string { return t.Format(time.RFC3339) }

// left says how long a certificate is valid yet.
func left(until, now time.Time) string {
	d := until.Sub(now)
	switch {
	case d < 0:
		return "ended"
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours left", int(d.Hours()))
	}
	return fmt.Sprintf("%d days left", int(d.Hours()/24))
}
