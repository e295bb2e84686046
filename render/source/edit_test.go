package source

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

func TestSetNumber(t *testing.T) {
	const api = "spec.vrrp.virtualRouterIDs.api"
	for _, tt := range []struct{ name, field, in, want string }{
		{"over another", api, "spec:\n  vrrp:\n    virtualRouterIDs: # mine\n      api: 7   # old\n", "spec:\n  vrrp:\n    virtualRouterIDs: # mine\n      api: 9 # old\n"},
		{"beside another", api, "spec:\n  vrrp:\n    virtualRouterIDs:\n      ingress: 7\n", "spec:\n  vrrp:\n    virtualRouterIDs:\n      ingress: 7\n      api: 9\n"},
		{"a part is there", api, "kind: X\nspec:\n    # timing\n    vrrp:\n        profile: fast\n", "kind: X\nspec:\n  # timing\n  vrrp:\n    profile: fast\n    virtualRouterIDs:\n      api: 9\n"},
		{"nothing is there", api, "kind: X # y", "kind: X # y\nspec:\n  vrrp:\n    virtualRouterIDs:\n      api: 9\n"},
		{"an empty key", api, "spec:\nkind: X\n", "spec:\n  vrrp:\n    virtualRouterIDs:\n      api: 9\nkind: X\n"},
		{"braces", api, "spec: {vrrp: {profile: fast}}\n", "spec: {vrrp: {profile: fast, virtualRouterIDs: {api: 9}}}\n"},
		{"empty braces", api, "spec: {}\n", "spec: {vrrp: {virtualRouterIDs: {api: 9}}}\n"},
		{"an item of a list", "spec.ingress[1].virtualRouterID", "spec:\n  ingress:\n  - name: a\n    vips: [x]\n  - name: b\n    vips: [y]\n",
			"spec:\n  ingress:\n  - name: a\n    vips: [x]\n  - name: b\n    vips: [y]\n    virtualRouterID: 9\n"},
		{"an item of one key", "spec.ingress[0].virtualRouterID", "spec:\n  ingress:\n  - name: a\n", "spec:\n  ingress:\n  - name: a\n    virtualRouterID: 9\n"},
		{"an item that is not there", "spec.ingress[0].virtualRouterID", "spec: {}\n", ""},
		{"a mapping instead of the list", "spec.ingress[1].virtualRouterID", "spec: {ingress: {a: {}}}\n", ""},
		{"text in the way", api, "spec: x\n", ""},
		{"an anchor in the way", api, "a: &a {virtualRouterIDs: {api: 1}}\nspec: {vrrp: *a}\n", ""},
		{"not YAML", api, "a: [", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := SetNumber([]byte(tt.in), tt.field, 9)
			if (err != nil) != (tt.want == "") {
				t.Fatal(err)
			}
			testkit.Equal(t, tt.want, string(got))
		})
	}
}

func FuzzSetNumber(f *testing.F) {
	f.Add("spec:\n  vrrp:\n    virtualRouterIDs: {api: 7}\n", "spec.vrrp.virtualRouterIDs.api")
	f.Add("spec:\n  ingress:\n  - name: a\n", "spec.ingress[0].virtualRouterID")
	f.Fuzz(func(t *testing.T, in, field string) {
		if out, err := SetNumber([]byte(in), field, 9); err == nil {
			// SetNumber verifies the rest.
			if _, list := Parse("x", out); list != nil && strings.TrimSpace(field) != "" {
				t.Error(list)
			}
		}
	})
}
