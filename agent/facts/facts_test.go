package facts

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

func peers(list ...string) []v1alpha1.Peer {
	var out []v1alpha1.Peer
	for _, line := range list {
		words := strings.Fields(line)
		p := v1alpha1.Peer{Name: words[0], Role: v1alpha1.RoleMaster}
		for _, a := range words[1:] {
			p.Addresses = append(p.Addresses, netip.MustParseAddr(a))
		}
		out = append(out, p)
	}
	return out
}

func TestMerge(t *testing.T) {
	tests := []struct {
		name             string
		known, live, own []string
		want             string
	}{
		{"nothing from the API", []string{"m1 192.0.2.11"}, nil, nil, "m1[192.0.2.11]"},
		{"both", []string{"m1 192.0.2.11"}, []string{"m2 192.0.2.12"}, nil, "m2[192.0.2.12] m1[192.0.2.11]"},
		{"hard case 15: it moved", []string{"m1 192.0.2.11"}, []string{"m1 192.0.2.77"}, nil, "m1[192.0.2.77]"},
		{"another name took the address over", []string{"m1 192.0.2.11"}, []string{"m3 192.0.2.11"}, nil, "m3[192.0.2.11]"},
		{"this node took it over", []string{"m1 192.0.2.11"}, nil, []string{"192.0.2.11"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var own []netip.Addr
			for _, a := range tt.own {
				own = append(own, netip.MustParseAddr(a))
			}
			var got []string
			for _, p := range merge(peers(tt.known...), peers(tt.live...), own) {
				var addresses []string
				for _, a := range p.Addresses {
					addresses = append(addresses, a.String())
				}
				got = append(got, p.Name+"["+strings.Join(addresses, " ")+"]")
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}
