package golden

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// marker occurs in every secret of every case.
const marker = "hunter2"

// checkSecrets: no secret of the input is in any output, encoded forms
// included.
func checkSecrets(t *testing.T, c clusterCase, r result) {
	secrets := []string{"^pullSecret", "^sshKey"}
	switch filepath.Base(c.input(t)) {
	case "clusterinstance.yaml":
		secrets = []string{`^  \.dockerconfigjson`, "^  sshPublicKey"}
	case "agentclusterinstall.yaml", "siteconfig.yaml":
		secrets = []string{"^  sshPublicKey"}
	}
	input := testkit.ReadFile(t, c.input(t))
	for _, field := range secrets {
		if !regexp.MustCompile(`(?m)` + field + `: .*` + marker).Match(input) {
			t.Errorf("%s of the input does not hold the marker %q", field, marker)
		}
	}
	clean := func(what string, data []byte) {
		if bytes.Contains(bytes.ToLower(data), []byte(marker)) {
			t.Errorf("%s holds a secret of the input", what)
		}
	}
	clean("the report", r.validate)
	for path, data := range r.rendered {
		clean(path, data)
		if strings.HasPrefix(path, "machineconfigs/") || strings.HasPrefix(path, "ignition/") {
			for _, f := range decodeData(t, path, data).Files {
				clean(path+" "+f.Path, f.Contents)
			}
		}
	}
	for node, all := range r.previews {
		for path, data := range all {
			clean("preview of "+node+" "+path, data)
		}
	}
}

// checkVIPs: only cluster.yaml contains the VIPs, so that a change of a VIP changes one file.
func checkVIPs(t *testing.T, r result) {
	var vips []string
	for _, g := range r.cluster(t).Spec.Groups {
		for _, a := range g.VIPs {
			vips = append(vips, regexp.QuoteMeta(a.String()))
		}
	}
	if r.cluster(t).Spec.LoadBalancer == v1alpha1.LoadBalancerNone {
		testkit.Empty(t, vips)
		return
	}
	vip := regexp.MustCompile(`(?:^|[^0-9a-f.:])(?:` + strings.Join(vips, "|") + `)(?:$|[^0-9a-f.:])`)
	for path, data := range r.rendered {
		form, _, _ := strings.Cut(path, "/")
		if form != "files" && form != "manifests" {
			continue // encoded forms of the same
		}
		if !strings.HasSuffix(path, v1alpha1.ClusterConfigPath) && vip.Match(data) {
			t.Errorf("%s holds a VIP", path)
		}
		if strings.HasSuffix(path, v1alpha1.ClusterConfigPath) && !vip.Match(data) {
			t.Errorf("%s holds no VIP", path)
		}
	}
}

// escaped matches template delimiters that are escaped for a second template.
var escaped = regexp.MustCompile("{{-? *[\"'`]+ *{{|{{-? *[\"'`]}}|}}[\"'`] *-?}}|{{ *printf \"{{")

// checkDelimiters: nothing in the output is a template of a template.
func checkDelimiters(t *testing.T, r result) {
	for path, data := range r.rendered {
		if found := escaped.Find(data); found != nil {
			t.Errorf("%s has escaped delimiters: %q", path, found)
		}
	}
}
