package installconfig_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/render/installconfig"
)

// marker is the value of every secret in secret, which must not leak.
const marker = "hunter2"

// secret has the marker in every field for a secret.
//
//go:embed testdata/secrets.yaml
var secret string

func TestSecretsStayInside(t *testing.T) {
	platforms := []string{"baremetal", "vsphere", "openstack", "ovirt", "nutanix", "none", "external", "aws"}
	breaks := []struct{ name, old, new string }{
		{"as it is", "", ""},
		{"list for text", "pullSecret: hunter2", "pullSecret: [hunter2, {hunter2: hunter2}]"},
		{"mapping for text", "password: hunter2\n", "password: {hunter2: hunter2}\n"},
		{"text for list", "vcenters: [{server: a, user: hunter2, password: hunter2}]", "vcenters: hunter2"},
		{"text for mapping", "bmc: {address: hunter2, username: hunter2, password: hunter2}", "bmc: hunter2"},
		{"text for fencing", "fencing: {credentials: [{password: hunter2}]}", "fencing: hunter2"},
		{"bad alias", "password: hunter2\n", "password: *hunter2\n"},
		{"bad tag", "password: hunter2\n", "password: !hunter2 a\n"},
		{"bad escape", "password: hunter2\n", "password: \"\\qhunter2\"\n"},
		{"reserved character", "password: hunter2\n", "password: @hunter2\n"},
		{"open quote", "pullSecret: hunter2", "pullSecret: '{\"hunter2\":"},
		{"open brace", "pullSecret: hunter2", "pullSecret: {\"hunter2\":"},
		{"two colons", "pullSecret: hunter2", "pullSecret: hunter2: hunter2"},
		{"no colon", "pullSecret: hunter2", "hunter2"},
		{"tab", "pullSecret: hunter2", "pullSecret:\n\thunter2"},
		{"control character", "pullSecret: hunter2", "pullSecret: hunter2\x01hunter2"},
		{"not UTF-8", "pullSecret: hunter2", "pullSecret: hunter2\xffhunter2"},
		{"wrong indentation", "    password: hunter2", "   password: hunter2"},
		{"duplicate", "pullSecret: hunter2", "pullSecret: hunter2\npullSecret: hunter2"},
		{"secret as key", "pullSecret: hunter2", "hunter2: a\nhunter2: b\nHUNTER2: c"},
		{"second document", "proxy:", "---\nhunter2: hunter2\nproxy:"},
		{"directive", "apiVersion: v1", "%hunter2 hunter2\n---\napiVersion: v1"},
		{"anchor", "pullSecret: hunter2", "pullSecret: &hunter2 [*hunter2]"},
		{"deep", "pullSecret: hunter2", "pullSecret: " + strings.Repeat("[", 200) + "hunter2" + strings.Repeat("]", 200)},
	}
	for _, platform := range platforms {
		for _, b := range breaks {
			t.Run(platform+"/"+b.name, func(t *testing.T) {
				in := fmt.Sprintf(secret, platform)
				if b.old != "" && !strings.Contains(in, b.old) {
					t.Fatalf("nothing to replace: %s", b.old)
				}
				in = strings.Replace(in, b.old, b.new, 1)
				c, problems := installconfig.Read("ic.yaml", []byte(in))
				if s := problems.Error(); strings.Contains(strings.ToLower(s), marker) {
					t.Errorf("the report leaks:\n%s", s)
				}
				if c == nil {
					return
				}
				c.Doc = nil // holds the file, for positions only
				testkit.Lacks(t, fmt.Sprintf("%+v", *c), marker)
			})
		}
	}
}
