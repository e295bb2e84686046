package golden

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/internal/testkit"
)

const smallCorefile = `. {
    bind 192.0.2.10 2001:db8::10
    errors
    hosts /etc/coredns/names c1.example.com {
        fallthrough
    }
    template IN AAAA c1.example.com {
        match "^api[.]c1[.]example[.]com[.]$"
        rcode NOERROR
    }
    forward . /var/run/NetworkManager/resolv.conf
    cache 30
    health :18080
}
`

func TestCoreDNSAnswers(t *testing.T) {
	for _, upstream := range []string{"192.0.2.53/24", "2001:db8::53/64"} {
		t.Run(upstream, func(t *testing.T) { testCoreDNS(t, netip.MustParsePrefix(upstream)) })
	}
}

func testCoreDNS(t *testing.T, upstream netip.Prefix) {
	r := coreDNS(t, []byte(smallCorefile),
		map[string][]byte{
			"/etc/coredns/names":                  []byte("192.0.2.5 api.c1.example.com\n192.0.2.6 api.c1.example.com\n"),
			"/var/run/NetworkManager/resolv.conf": []byte("nameserver " + upstream.Addr().String() + "\n"),
		},
		[]netip.Prefix{netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("2001:db8::10/64")},
		&siteServer{upstream, []string{
			"www.example.org. 60 IN A 192.0.2.80",
			"alias.example.org. 60 IN CNAME www.example.org.",
			"alias.example.org. 60 IN A 192.0.2.80",
		}})

	tests := []struct {
		name, qtype string
		want        answer
	}{
		{"api.c1.example.com", "A", answer{"NOERROR", []string{"A 192.0.2.5", "A 192.0.2.6"}}},
		{"API.c1.example.com.", "A", answer{"NOERROR", []string{"A 192.0.2.5", "A 192.0.2.6"}}},
		{"www.example.org", "A", answer{"NOERROR", []string{"A 192.0.2.80"}}},
		{"www.example.org", "AAAA", answer{"NOERROR", nil}},
		{"alias.example.org", "CNAME", answer{"NOERROR", []string{"CNAME www.example.org."}}},
		{"none.example.org", "A", answer{"NXDOMAIN", nil}},
	}
	for _, server := range []string{"192.0.2.10", "2001:db8::10"} {
		at := r.at(netip.MustParseAddr(server))
		for _, tt := range tests {
			if diff := cmp.Diff(tt.want, at.query(tt.name, tt.qtype)); diff != "" {
				t.Errorf("%s asked for %s %s (-want +got):\n%s", server, tt.name, tt.qtype, diff)
			}
		}
	}
}

func TestCoreDNSOnLoopback(t *testing.T) {
	r := coreDNS(t, []byte(". {\n    template IN A . {\n        answer \"{{ .Name }} 5 IN A 192.0.2.7\"\n    }\n}\n"), nil, nil, nil)
	want := answer{"NOERROR", []string{"A 192.0.2.7"}}
	testkit.Equal(t, want, r.query("any.example.com", "A"))
}
