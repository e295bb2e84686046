package nodeip

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// network builds a snapshot from lines, as a person would write them down:
//
//	link eth0 [down] [loopback]
//	addr 192.0.2.10/24 [tentative] [deprecated] [dadfailed] [temporary] [label=L]
//	route default [via ADDR] [src ADDR] [metric N] [ra]
//
// Addresses and routes belong to the link before them.
func network(t *testing.T, text string) Snapshot {
	t.Helper()
	var s Snapshot
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "; ", "\n"), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		has := func(word string) bool { return strings.Contains(line+" ", " "+word) }
		switch words[0] {
		case "link":
			s.Links = append(s.Links, Link{Index: len(s.Links) + 1, Name: words[1], Up: !has("down"), Loopback: has("loopback")})
		case "addr":
			a := Address{
				Link: len(s.Links), Prefix: netip.MustParsePrefix(words[1]),
				Tentative: has("tentative"), Deprecated: has("deprecated"), DADFailed: has("dadfailed"), Temporary: has("temporary"),
			}
			if _, label, ok := strings.Cut(line, "label="); ok {
				a.Label = strings.TrimSpace(label)
			}
			s.Addresses = append(s.Addresses, a)
		case "route":
			s.Routes = append(s.Routes, parseRoute(t, len(s.Links), words[1:]))
		default:
			t.Fatalf("unknown line %q", line)
		}
	}
	return s
}

func parseRoute(t *testing.T, link int, words []string) Route {
	t.Helper()
	r := Route{Link: link}
	switch words[0] {
	case "default":
		r.Destination = netip.MustParsePrefix("0.0.0.0/0")
	case "default6":
		r.Destination = netip.MustParsePrefix("::/0")
	default:
		r.Destination = netip.MustParsePrefix(words[0])
	}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "via":
			i++
			r.Gateway = netip.MustParseAddr(words[i])
		case "src":
			i++
			r.Source = netip.MustParseAddr(words[i])
		case "metric":
			i++
			for _, digit := range words[i] {
				r.Metric = 10*r.Metric + int(digit-'0')
			}
		case "ra":
			r.Advertised = true
		default:
			t.Fatalf("unknown option %q of a route", words[i])
		}
	}
	return r
}

// cluster builds the facts of a cluster on bare metal with these VIPs and machine networks,
// each separated by spaces.
func cluster(vips, machines string) *v1alpha1.ClusterConfigSpec {
	spec := &v1alpha1.ClusterConfigSpec{Platform: "baremetal", LoadBalancer: v1alpha1.LoadBalancerInCluster}
	for _, v := range strings.Fields(vips) {
		spec.Groups = append(spec.Groups, v1alpha1.Group{VIPs: []netip.Addr{netip.MustParseAddr(v)}})
	}
	for _, m := range strings.Fields(machines) {
		spec.MachineNetworks = append(spec.MachineNetworks, netip.MustParsePrefix(m))
	}
	return spec
}

// picked formats a choice, such as "192.0.2.10/24 eth0".
func picked(c Choice) string {
	var out []string
	for _, a := range c.Addresses {
		if a.Found() {
			out = append(out, a.Address.String()+" "+a.Interface)
		} else {
			out = append(out, "no "+string(a.Family))
		}
	}
	return strings.Join(out, ", ")
}
