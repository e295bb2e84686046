package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
)

const openStackWithoutVIPs = `apiVersion: v1
baseDomain: example.com
metadata: {name: demo}
networking: {machineNetwork: [{cidr: 192.0.2.0/24}]}
platform: {openstack: {apiVIPs: [192.0.2.9]}}
`

// Output with VIPs marks those that the installer chooses: here the ingress VIP.
func TestInstallersVIPs(t *testing.T) {
	t.Chdir(t.TempDir())
	lay(t, map[string]string{"install-config.yaml": openStackWithoutVIPs, "vipgen.yaml": ownImage})
	for _, name := range []string{"validate", "explain"} {
		out := exits(t, command.OK, name, "install-config.yaml").cleanly().out
		for line := range strings.Lines(out) {
			chosen := strings.Contains(line, "the installer's default")
			if strings.Contains(line, "virtual router ID") && chosen != strings.Contains(line, "192.0.2.7 (the installer's default)") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if strings.Count(out, "the installer's default") != 1 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	type vips struct {
		Name, Group       string
		InstallersDefault bool
	}
	for _, args := range [][]string{{"explain", "-o", "json"}, {"openstack-hints", "--port", "master=a", "-o", "json"}} {
		var got struct{ Groups, VIPs []vips }
		testkit.Must(t, json.Unmarshal([]byte(must(t, append(args, "install-config.yaml")...)), &got))
		all := append(got.Groups, got.VIPs...)
		if len(all) != 2 {
			t.Fatalf("%v: %v", args, all)
		}
		for _, g := range all {
			testkit.Equal(testkit.In(t, args, g), g.Name+g.Group == "ingress", g.InstallersDefault)
		}
	}
}

const mirrored = `imageDigestSources: [{source: quay.io/openshift, mirrors: [registry.example.com/openshift]}]
`

// fileAndCode matches a line of a report.
var fileAndCode = regexp.MustCompile(`(?m)^(?:([^\s:]+\.yaml):)?.* \[([a-z-]+)\]$`)

// Advice on images is printed once and last, with its position, after warnings about flags and
// about other files and clusters; and not next to an error, wherever that was found.
func TestUnpinnedImagesComeLast(t *testing.T) {
	t.Chdir(t.TempDir())
	outside := strings.ReplaceAll(goodInstallConfig, "192.0.2.0/24", "198.51.100.0/24")
	lay(t, map[string]string{
		"install-config.yaml":       goodInstallConfig + mirrored,
		"two/a/install-config.yaml": mirrored + goodInstallConfig,
		"two/b/install-config.yaml": outside,
	})
	for _, tt := range []struct {
		args string
		code int
		want string // ends of the report's lines: codes
	}{
		{"render install-config.yaml", command.OK, "install-config.yaml unpinned-image"},
		{"validate install-config.yaml", command.OK, "install-config.yaml default-image, install-config.yaml unpinned-image"},
		{"explain install-config.yaml", command.OK, "install-config.yaml unpinned-image"},
		{"render two", command.OK, "two/b/install-config.yaml vip-outside-network, two/a/install-config.yaml unpinned-image"},
		{"validate two/a --openshift-version 4.12", command.Input, "two/a/install-config.yaml unknown-field, two/a/install-config.yaml needs-version"},
		{"metallb install-config.yaml --address 203.0.113.9 --selector app=api --namespace apis", command.OK, " vip-outside-network, install-config.yaml unpinned-image"},
	} {
		code, _, report := run("", strings.Fields(tt.args)...)
		var got []string
		for _, m := range fileAndCode.FindAllStringSubmatch(report, -1) {
			got = append(got, m[1]+" "+m[2])
		}
		if s := strings.Join(got, ", "); s != tt.want || code != tt.code {
			t.Errorf("%s: exit code %d, %q, want %q\n%s", tt.args, code, s, tt.want, report)
		}
	}
}
