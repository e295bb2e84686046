package daemon

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

//go:embed testdata/keepalived.conf
var instance string

const frontend = "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\nfrontend api\n    bind :::9445 v4v6\n"

// Errors and mere warnings of the daemons are complaints.
func TestRefuses(t *testing.T) {
	for name, change := range map[string][3]string{
		"no complaint":    {"", "", ""},
		"unknown keyword": {"version 2", "frobnicate 2", "Unknown keyword 'frobnicate'"},
		"a warning alone": {"demo_api", "mycluster_api_vip", "Truncating auth_pass"},
		"no include":      {"vrrp_instance", "include /etc/none.conf\nvrrp_instance", "Config files missing"},
	} {
		expectComplaint(testkit.In(t, "keepalived", name), checkKeepalived(t, []byte(strings.Replace(instance, change[0], change[1], 1))), change[2])
	}
	for name, change := range map[string][3]string{
		"no complaint":    {"", "", ""},
		"unknown keyword": {"bind", "frobnicate", "unknown keyword 'frobnicate'"},
		"a warning alone": {"    timeout client 30s\n", "", "[WARNING]"},
	} {
		expectComplaint(testkit.In(t, "HAProxy", name), checkHAProxy(t, []byte(strings.Replace(frontend, change[0], change[1], 1))), change[2])
	}
}

// expectComplaint compares a complaint with a part of the wanted one, which is empty for none.
func expectComplaint(t testing.TB, got, want string) {
	t.Helper()
	testkit.Contains(t, got, want)
	testkit.Equal(t, want == "", got == "")
}
