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

const trackHealth = `track_file health {
    file "/run/vipgen/health"
    weight 1
    init_file 0
}`

const checkScript = `global_defs {
    enable_script_security
    script_user nobody
}
vrrp_script check {
    script "/bin/true"
    interval 1
}`

func TestKeepalivedAccepts(t *testing.T) {
	tests := []struct{ name, conf string }{
		{"smallest", conf("", "")},
		{"other link", strings.ReplaceAll(conf("", ""), "eth0", "br-ex")},
		{"two links", conf("", "") + strings.NewReplacer("eth0", "ens3", "instance api", "instance ingress").Replace(conf("", ""))},
		{"unicast with TTL check", conf("", "unicast_src_ip 192.0.2.11\nunicast_peer {\n192.0.2.12 min_ttl 255\n}")},
		{"no peers, held back", conf("", "unicast_src_ip 192.0.2.11\nunicast_fault_no_peer\nunicast_peer {\n}")},
		{"track file in a directory that is not there", conf(trackHealth, "track_file {\nhealth weight 5\n}")},
		{"a script", conf(checkScript, "track_script {\ncheck\n}")},
		{"VRRPv2 beside a global v3", strings.Replace(conf("global_defs {\nvrrp_version 3\n}", ""), "version 3\n    advert_int 0.1", "version 2", 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { Keepalived(t, []byte(tt.conf)) })
	}
}

func TestKeepalivedRefuses(t *testing.T) {
	v2 := func(lines string) string {
		return strings.Replace(conf("", ""), "version 3\n    advert_int 0.1", "version 2\n"+lines, 1)
	}
	tests := []struct{ name, conf, want string }{
		{"unknown keyword", conf("", "frobnicate 3"), "Unknown keyword 'frobnicate'"},
		{"unknown keyword beside a script", conf(checkScript, "track_script {\ncheck\n}\nfrobnicate 3"), "Unknown keyword 'frobnicate'"},
		{"unknown script", conf(checkScript, "track_script {\nother\n}"), "track script other not found"},
		{"router ID", strings.Replace(conf("", ""), "id 10", "id 300", 1), "VRID '300' not valid"},
		{"priority", strings.Replace(conf("", ""), "priority 40", "priority 400", 1), "Priority not valid"},
		{"VIP", strings.Replace(conf("", ""), "192.0.2.5", "192.0.2.500", 1), "invalid IP 192.0.2.500"},
		{"VIP of two families", strings.Replace(conf("", ""), "192.0.2.5/24", "192.0.2.5/24\n2001:db8::5/64", 1), "address family must match"},
		{"no brace at the end", strings.TrimSuffix(conf("", ""), "}\n"), "missing '}'"},
		{"loopback", strings.Replace(conf("", ""), "eth0", "lo", 1), "cannot use a loopback interface"},
		{"tenth of a second in v2", v2("advert_int 0.1"), "must be an integer"},
		{"not in centiseconds", strings.Replace(conf("", ""), "0.1", "0.333", 1), "must be in units of 10ms"},
		{"more than v3 carries", strings.Replace(conf("", ""), "0.1", "41", 1), "out of range"},
		{"authentication in v3", conf("", "authentication {\nauth_type PASS\nauth_pass abc\n}"), "does not support authentication"},
		{"password cut in v2", v2("authentication {\nauth_type PASS\nauth_pass mycluster_api_vip\n}"), "Truncating auth_pass"},
		{"empty peers", conf("", "unicast_src_ip 192.0.2.11\nunicast_peer {\n}"), "without any unicast peers"},
		{"peer of the other family", conf("", "unicast_peer {\n2001:db8::12\n}"), "MUST be of the same family"},
		{"undefined track file", conf("", "track_file {\nhealth weight 5\n}"), "track file health not found"},
		{"track file weight", conf(trackHealth, "track_file {\nhealth weight 300\n}"), "must be in [-254..254]"},
		{"same router ID twice", conf("", "") + strings.Replace(conf("", ""), "api", "ingress", 1), "both use VRID 10"},
		{"sync group of one", conf("vrrp_sync_group vips {\ngroup {\napi\n}\n}", ""), "only 1 virtual router"},
		{"script without script security", conf("vrrp_script s {\nscript /bin/true\n}", "track_script {\ns\n}"), "SECURITY VIOLATION"},
		{"include of nothing, exit 0", conf("include /etc/keepalived/none.conf", ""), "Config files missing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			testkit.Contains(t, checkKeepalived(t, []byte(tt.conf)), tt.want)
		})
	}
}
