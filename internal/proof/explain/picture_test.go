package explain_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/proof/explain"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render"
)

// texts returns the visible text of a cluster's picture.
func texts(t *testing.T, c *render.Cluster) (out []string) {
	t.Helper()
	r, err := explain.Cluster(c)
	testkit.Must(t, err)
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		testkit.Must(t, explain.WriteSVG(w, c, r))
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two pictures differ")
	}
	for x := xml.NewDecoder(&first); ; {
		token, err := x.Token()
		if err == io.EOF {
			return out
		}
		testkit.Must(t, err)
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			out = append(out, string(text))
		}
	}
}

func TestPicture(t *testing.T) {
	for _, tt := range []struct {
		platform, vip string
		want, not     []string
	}{
		{twoOfThem, "", []string{"demo: VIPs, nodes and connections", "bootstrap", "nodes: 3", "2001:db8::2", "40–68", "70", "haproxy", "HAProxy", "VRRPv3, unicast, every 40 ms"}, nil},
		{oneFamily, "{vrrp: {profile: classic}, ports: {haproxy: 9999}}", []string{"port 9999", "VRRPv2, unicast, every 1000 ms"}, nil},
		{oneFamily, "{ingress: [{name: edge, domains: [edge.example.com], vips: [192.0.2.9]}]}", []string{"ingress-edge", "192.0.2.9"}, nil},
		{oneFamily, "{loadBalancer: {type: External}}", []string{"coredns", "CoreDNS of the node"}, []string{"keepalived", "API VIP", "haproxy"}},
	} {
		got := texts(t, clusterOf(t, tt.platform, tt.vip, 3, 2))
		for _, want := range tt.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s %s: no %q in %q", tt.platform, tt.vip, want, got)
			}
		}
		for _, not := range tt.not {
			if slices.Contains(got, not) {
				t.Errorf("%s %s: %q", tt.platform, tt.vip, not)
			}
		}
	}
}
