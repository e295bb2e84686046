package endpoint

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseHost(t *testing.T) {
	tests := []struct {
		in, host string
		port     uint16
	}{
		{"api.demo.example.com", "api.demo.example.com", 6443},
		{"API.demo.example.com.:443", "api.demo.example.com", 443},
		{"192.0.2.17", "192.0.2.17", 6443},
		{"192.0.2.17:8443", "192.0.2.17", 8443},
		{"2001:db8::17", "2001:db8::17", 6443},
		{"[2001:db8::17]", "2001:db8::17", 6443},
		{"[2001:DB8:0::17]:443", "2001:db8::17", 443},
		{"https://api.demo.example.com:6443/", "api.demo.example.com", 6443},
		{"https://api.demo.example.com/readyz", "api.demo.example.com", 6443},
		{"under_score.example.com", "under_score.example.com", 6443},
	}
	for _, tt := range tests {
		host, port, err := ParseHost(tt.in)
		if err != nil || host != tt.host || port != tt.port {
			t.Errorf("%q: %q %d %v, want %q %d", tt.in, host, port, err, tt.host, tt.port)
		}
	}
	for in, want := range map[string]string{
		"":                      "the host is missing",
		":6443":                 "the host is missing",
		"a:":                    "the port is missing",
		"a:0":                   "a port is a number",
		"a:65536":               "a port is a number",
		"a:https":               "a port is a number",
		"2001:db8::17:6443:x":   "[ADDRESS]:PORT",
		"http://a":              "only https",
		"a b":                   "not a DNS name",
		"a/b":                   "not a DNS name",
		"a\x1b[31m":             "not a DNS name",
		strings.Repeat("a", 64): "not a DNS name",
	} {
		if host, port, err := ParseHost(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %d %v, want %q", in, host, port, err, want)
		}
	}
}

func TestParsePin(t *testing.T) {
	addr := netip.MustParseAddr
	tests := []struct {
		in   string
		want Pin
	}{
		{"api.example.com:6443:192.0.2.17", Pin{"api.example.com", 6443, []netip.Addr{addr("192.0.2.17")}}},
		{"API.example.com.:6443:[2001:db8::17],192.0.2.17", Pin{"api.example.com", 6443, []netip.Addr{addr("2001:db8::17"), addr("192.0.2.17")}}},
		{"*:443:2001:db8::17", Pin{"*", 443, []netip.Addr{addr("2001:db8::17")}}},
	}
	for _, tt := range tests {
		got, err := ParsePin(tt.in)
		if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", tt.in, err, diff)
		}
	}
	for _, in := range []string{"", "a", "a:6443", "a:0:192.0.2.1", "a:x:192.0.2.1", ":1:192.0.2.1", "a:6443:", "a:6443:b", "a:6443:192.0.2.1,"} {
		if p, err := ParsePin(in); err == nil {
			t.Errorf("%q: %+v", in, p)
		}
	}
}

func TestParseNameserver(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.53": "192.0.2.53:53", "192.0.2.53:5353": "192.0.2.53:5353", "2001:db8::53": "[2001:db8::53]:53", "[2001:db8::53]": "[2001:db8::53]:53", "[2001:db8::53]:5353": "[2001:db8::53]:5353",
	} {
		if got, err := ParseNameserver(in); err != nil || got.String() != want {
			t.Errorf("%q: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "dns.example.com", "192.0.2.53:0", "192.0.2.53:x"} {
		if got, err := ParseNameserver(in); err == nil {
			t.Errorf("%q: %v", in, got)
		}
	}
}

func TestReadAuthorities(t *testing.T) {
	for _, in := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if a, err := ReadAuthorities([]byte(in)); err == nil {
			t.Errorf("%q: %+v", in, a)
		}
	}
}
