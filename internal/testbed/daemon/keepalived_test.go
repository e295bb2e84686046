package daemon

import (
	"strings"
	"testing"

	"github.com/vipgen/vipgen/internal/testkit"
)

// conf is a keepalived.conf with one instance; the lines given are its own.
func conf(before, inside string) string {
	return before + `
vrrp_instance api {
    state BACKUP
    interface eth0
    virtual_router_id 10
    priority 40
    version 3
    advert_int 0.1
    virtual_ipaddress {
        192.0.2.5/24
    }
` + inside + `
}
`
}

const checkScript = `global_defs {
    enable_script_security
    script_user nobody
}
vrrp_script check {
    script "/bin/true"
    interval 1
}`

func TestKeepalivedRefuses(t *testing.T) {
	tests := []struct{ name, conf, want string }{
		{"unknown keyword beside a script", conf(checkScript, "track_script {\ncheck\n}\nfrobnicate 3"), "Unknown keyword 'frobnicate'"},
		{"unknown script", conf(checkScript, "track_script {\nother\n}"), "track script other not found"},
		{"VIP", strings.Replace(conf("", ""), "192.0.2.5", "192.0.2.500", 1), "invalid IP 192.0.2.500"},
		{"no brace at the end", strings.TrimSuffix(conf("", ""), "}\n"), "missing '}'"},
		{"loopback", strings.Replace(conf("", ""), "eth0", "lo", 1), "cannot use a loopback interface"},
		{"not in centiseconds", strings.Replace(conf("", ""), "0.1", "0.333", 1), "must be in units of 10ms"},
		{"password cut in v2", strings.Replace(conf("", "authentication {\nauth_type PASS\nauth_pass mycluster_api_vip\n}"), "version 3\n    advert_int 0.1", "version 2", 1), "Truncating auth_pass"},
		{"undefined track file", conf("", "track_file {\nhealth weight 5\n}"), "track file health not found"},
		{"same router ID twice", conf("", "") + strings.Replace(conf("", ""), "api", "ingress", 1), "both use VRID 10"},
		{"script without script security", conf("vrrp_script s {\nscript /bin/true\n}", "track_script {\ns\n}"), "SECURITY VIOLATION"},
		{"include of nothing, exit 0", conf("include /etc/keepalived/none.conf", ""), "Config files missing"},
	}
	for _, tt := range tests {
		testkit.Contains(testkit.In(t, tt.name), checkKeepalived(t, []byte(tt.conf)), tt.want)
	}
}
