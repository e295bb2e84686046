package unit

import (
	"strings"
	"testing"
)

func TestRender(t *testing.T) {
	const image = "registry.example.com/agent@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	for _, retry := range []bool{true, false} {
		units, err := Render(Params{AgentImage: image, Retry: retry})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, u := range units {
			names = append(names, u.Name)
			if !u.Enabled || !strings.Contains(u.Contents, "\n[Install]\n") {
				t.Errorf("%s is enabled: %t\n%s", u.Name, u.Enabled, u.Contents)
			}
			if strings.HasSuffix(u.Name, ".path") {
				continue
			}
			if !strings.Contains(u.Contents, " "+image+" ") {
				t.Errorf("%s has no image:\n%s", u.Name, u.Contents)
			}
			// The image's own user may write nothing on the host (docs/image.md).
			if !strings.Contains(u.Contents, " --user 0:0 ") {
				t.Errorf("%s does not say that it runs as root:\n%s", u.Name, u.Contents)
			}
			if strings.Contains(u.Contents, "\nRestart=on-failure\n") != retry {
				t.Errorf("%s retries, want %t:\n%s", u.Name, retry, u.Contents)
			}
			if strings.ContainsAny(u.Contents, "%$`\\") {
				t.Errorf("%s has specifiers or variables:\n%s", u.Name, u.Contents)
			}
		}
		if got := strings.Join(names, " "); got != "nodeip-configuration.service on-prem-resolv-prepender.path on-prem-resolv-prepender.service" {
			t.Errorf("units %s", got)
		}
	}
}
