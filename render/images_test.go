package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/problem"
)

// TestImagesOfAnotherRelease: images with a known release, and others.
func TestImagesOfAnotherRelease(t *testing.T) {
	const digest = "@sha256:0000000000000000000000000000000000000000000000000000000000000001"
	rel := &Release{Version: "4.19.3", Images: map[string]string{tagKeepalived: "r/k" + digest, tagHAProxy: "r/h" + digest, tagCoreDNS: "r/c" + digest}}
	for _, tt := range []struct {
		version, images string
		rel             *Release
		want            string // fields named by a warning
	}{
		{"4.18", "release: 4.18.3, keepalived: r/k" + digest, nil, ""},
		{"4.19", "release: 4.18.3, keepalived: r/k" + digest, nil, "spec.images.release"},
		{"4.19", "release: 4.18.3", nil, ""},                       // nothing is pinned
		{"4.19", "release: 4.18, agent: r/a:4.18", nil, ""},        // the agent is vipgen's
		{"", "release: 4.18.3, keepalived: r/k" + digest, nil, ""}, // any release
		{"4.19", "keepalived: 'r/k:4.18', haproxy: 'r:5000/h:4.19', coredns: 'r/c:v1.12'", nil, "spec.images.keepalived"},
		{"4.19", "keepalived: 'r/k:4.18.7-1', haproxy: 'r/h:2.8'", nil, "spec.images.keepalived"},
		{"4.19", "haproxy: 'r.example.com:418/h'", nil, ""}, // a port, no tag
		{"4.19", "keepalived: r/k" + digest, nil, ""},       // unknown
		{"4.19", "keepalived: r/k" + digest + ", haproxy: r/x" + digest, rel, "spec.images.haproxy"},
		{"4.18", "", rel, "--release-info"},
		{"", "", rel, ""},
	} {
		vip := "apiVersion: vipgen.io/v1alpha1\nkind: VIPConfig\nspec: {apiVIPs: [192.0.2.5], ingressVIPs: [192.0.2.7], images: {" + tt.images + "}}\n"
		_, list, err := Load(Sources{
			InstallConfig: File{Name: "install-config.yaml", Data: []byte("apiVersion: v1\nbaseDomain: example.com\nmetadata: {name: demo}\nnetworking: {machineNetwork: [{cidr: 192.0.2.0/24}]}\nplatform: {none: {}}\n")},
			VIPConfig:     &File{Name: "vipgen.yaml", Data: []byte(vip)},
		}, Options{OpenShiftVersion: tt.version, Release: tt.rel})
		if err != nil {
			t.Fatal(list.Error())
		}
		var fields []string
		for _, p := range list {
			if p.Code == problem.OtherRelease {
				fields = append(fields, p.Field)
				if at := fmt.Sprint(p.File, p.Line > 0); p.Severity != problem.Warning || strings.HasPrefix(p.Field, "spec.") && at != "vipgen.yamltrue" {
					t.Errorf("%v", p)
				}
			}
		}
		if got := strings.Join(fields, " "); got != tt.want {
			t.Errorf("%s with %s: %q, want %q\n%v", tt.version, tt.images, got, tt.want, list)
		}
	}
}
