package endpoint

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// defaultPort is the usual port of Kubernetes APIs.
const defaultPort = 6443

// Target is an endpoint with options for its check.
type Target struct {
	Host string
	Port uint16
	// ServerName is the required name in the certificate; Host if empty.
	ServerName string
	// Pinned are addresses that replace name resolution.
	Pinned []Pin
	// Nameserver replaces the system's resolver, if valid.
	Nameserver netip.AddrPort
	// IPv4 and IPv6 exclude the other family. Not both.
	IPv4, IPv6 bool
	// CAs are the trusted ones; the system's if empty.
	CAs Authorities
	// Path is the path of the readiness check.
	Path string
	// Timeout bounds each step.
	Timeout time.Duration
	// ExpiresWithin makes a certificate that expires sooner a finding.
	ExpiresWithin time.Duration
	// Now returns the time for checks of certificates; time.Now if nil.
	Now func() time.Time
}

// Pin is an address for a host and port, as curl's --resolve.
type Pin struct {
	Host      string // "*" is any
	Port      uint16
	Addresses []netip.Addr
}

// ParseHost parses HOST, HOST:PORT, [IPV6]:PORT or an https URL of them.
func ParseHost(s string) (host string, port uint16, err error) {
	bad := func(why string) (string, uint16, error) {
		return "", 0, fmt.Errorf("%q: expected HOST[:PORT], such as api.demo.example.com:6443: %s", s, why)
	}
	rest := strings.TrimPrefix(s, "https://")
	if rest != s {
		rest, _, _ = strings.Cut(rest, "/")
	}
	if strings.Contains(rest, "://") {
		return bad("only https is possible")
	}
	host, text := rest, ""
	if _, err := netip.ParseAddr(rest); err != nil { // else a bare IPv6 address
		if strings.HasPrefix(rest, "[") && strings.HasSuffix(rest, "]") {
			host = rest[1 : len(rest)-1]
		} else if strings.Contains(rest, ":") {
			if host, text, err = net.SplitHostPort(rest); err != nil {
				return bad("an IPv6 address with a port is [ADDRESS]:PORT")
			}
			if text == "" {
				return bad("the port is missing")
			}
		}
	}
	port = defaultPort
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return bad("a port is a number from 1 to 65535")
		}
		port = uint16(n)
	}
	if host, err = parseName(host); err != nil {
		return bad(err.Error())
	}
	return host, port, nil
}

// ParseServerName parses the name for a certificate.
func ParseServerName(s string) (string, error) {
	name, err := parseName(s)
	if err != nil {
		return "", fmt.Errorf("%q: expected a DNS name or an address: %w", s, err)
	}
	return name, nil
}

// parseName parses an address, or a DNS name in any case, with an optional trailing dot.
func parseName(s string) (string, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	switch {
	case name == "":
		return "", errors.New("the host is missing")
	case !v1alpha1.ValidName(strings.ReplaceAll(name, "_", "-")):
		return "", errors.New("not a DNS name")
	}
	return name, nil
}

// ParsePin parses HOST:PORT:ADDRESS[,ADDRESS] as curl's --resolve does. IPv6 addresses may be
// in brackets.
func ParsePin(s string) (Pin, error) {
	bad := fmt.Errorf("%q: expected HOST:PORT:ADDRESS[,ADDRESS], such as api.demo.example.com:6443:192.0.2.17", s)
	part := strings.SplitN(s, ":", 3)
	if len(part) != 3 {
		return Pin{}, bad
	}
	port, err := strconv.ParseUint(part[1], 10, 16)
	if err != nil || port == 0 || part[0] == "" {
		return Pin{}, bad
	}
	p := Pin{Host: strings.ToLower(strings.TrimSuffix(part[0], ".")), Port: uint16(port)}
	for text := range strings.SplitSeq(part[2], ",") {
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			text = text[1 : len(text)-1]
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return Pin{}, bad
		}
		p.Addresses = append(p.Addresses, a)
	}
	return p, nil
}

// ParseNameserver parses ADDRESS[:PORT].
func ParseNameserver(s string) (netip.AddrPort, error) {
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return netip.AddrPortFrom(a, 53), nil
	}
	ap, err := netip.ParseAddrPort(s)
	if err != nil || ap.Port() == 0 {
		return ap, fmt.Errorf("%q: expected ADDRESS[:PORT], such as 192.0.2.53", s)
	}
	return ap, nil
}
