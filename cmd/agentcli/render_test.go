package agentcli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/haproxy"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// The same templates and facts render the same files as vipgen preview.
func TestRender(t *testing.T) {
	golden := "../../golden/cases/baremetal-usermanaged/"
	cluster := testkit.ReadFile(t, golden+"expected/files/every-pool"+v1alpha1.ClusterConfigPath)
	root := rootWith(t, string(cluster))
	for path, text := range map[string]string{
		v1alpha1.KeepalivedTemplate: keepalived.Template, v1alpha1.HAProxyTemplate: haproxy.Template,
		v1alpha1.CorefileTemplate: coredns.Template, v1alpha1.HostsTemplate: coredns.HostsTemplate,
	} {
		path = filepath.Join(root, path)
		testkit.WriteFile(t, path, []byte(text))
	}
	for _, name := range []string{"keepalived.conf", "haproxy.cfg", "Corefile", "hosts"} {
		t.Run(name, func(t *testing.T) {
			want := testkit.ReadFile(t, golden+"expected/preview/master-0/"+name)
			code, out, complaint := run(t, "render", name, "--root", root, "--facts", golden+"nodes/master-0.yaml")
			if code != command.OK || out != string(want) {
				t.Errorf("exit code %d, %s\n%s\nwant\n%s", code, complaint, out, want)
			}
		})
	}
	t.Run("surveyed", func(t *testing.T) {
		t.Setenv("NODE_NAME", "master-0")
		code, out, complaint := run(t, "render", "keepalived.conf", "--root", root, "--role", "master")
		if code != command.OK || !strings.Contains(out, "node master-0") {
			t.Errorf("exit code %d, %s\n%s", code, complaint, out)
		}
	})
}
