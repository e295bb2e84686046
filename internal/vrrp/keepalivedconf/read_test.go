package keepalivedconf_test

import (
	_ "embed"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp/keepalivedconf"
)

// whole has every supported keyword.
//
//go:embed testdata/whole.conf
var whole string

// The same configuration in other notations, as people write it.
var forms = map[string]string{
	"as it is":                  whole,
	"braces on their own lines": strings.ReplaceAll(whole, " {\n", "\n{\n"),
	"braces at the words":       strings.ReplaceAll(whole, " {\n", "{\n"),
	"comments everywhere":       strings.ReplaceAll(whole, "\n", " ! a comment\n# another\n"),
	"tabs":                      strings.ReplaceAll(whole, "    ", "\t"),
}

var ignoreText = cmp.Options{
	cmpopts.IgnoreTypes(keepalivedconf.Statement{}, []keepalivedconf.Statement{}),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// Every notation parses to the same.
func TestRead(t *testing.T) {
	want := &keepalivedconf.Config{
		RouterID: "master-0", Groups: []netip.Addr{addr("224.0.0.254")},
		Files:      []keepalivedconf.File{{Name: "lb-path", Path: "/run/vipgen/track/lb-path", Weight: 20}},
		SyncGroups: []keepalivedconf.SyncGroup{{Name: "demo", Members: []string{"demo_0", "demo_1"}, Tracks: []keepalivedconf.Track{{File: "lb-path", Weight: 20}}}},
		Instances: []keepalivedconf.Instance{{
			Name: "demo_0", NoPreempt: true, Version: 2, Interface: "eth0", RouterID: 51, Priority: 40, AdvertMS: 1000, AuthType: "PASS", Password: "demo_api",
			Source: addr("192.0.2.10"), Peers: []keepalivedconf.Peer{{Address: addr("192.0.2.11"), MinTTL: 255}}, TTL: 255,
			VIPs: []keepalivedconf.VIP{{Prefix: netip.MustParsePrefix("192.0.2.5/24")}},
		}, { // IPv6 has version 3, and the group is of IPv4
			Name: "demo_1", Version: 3, Interface: "eth0", RouterID: 52, Priority: 100, AdvertMS: 40,
			VIPs: []keepalivedconf.VIP{{Prefix: netip.MustParsePrefix("2001:db8::5/128")}},
		}, { // keepalived's defaults
			Name: "demo_2", Version: 2, Interface: "eth0", RouterID: 53, Priority: 100, AdvertMS: 1000, Group: addr("224.0.0.254"),
			VIPs: []keepalivedconf.VIP{{Prefix: netip.MustParsePrefix("192.0.2.6/32")}}, Tracks: []keepalivedconf.Track{{File: "lb-path", Weight: 5}},
		}},
	}
	for name, text := range forms {
		t.Run(name, func(t *testing.T) {
			got, problems := keepalivedconf.Read([]byte(text))
			if len(problems) > 0 {
				t.Fatal(problems[0].Error())
			}
			testkit.Equal(t, want, got, ignoreText)
		})
	}
}

// keepalived accepts every notation.
func TestKeepalivedAcceptsForms(t *testing.T) {
	testkit.Privileged(t)
	for name, text := range forms {
		t.Run(name, func(t *testing.T) { daemon.Keepalived(t, []byte(text)) })
	}
}

// Unsupported keywords are reported with their line, and values that keepalived rejects are
// problems.
func TestProblems(t *testing.T) {
	for _, tt := range []struct{ old, by, problem, unread string }{
		{"virtual_router_id 51", "virtual_router_id 300", `line 25: virtual_router_id "300": expected a number from 1 to 255`, ""},
		{"priority 40", "priority -1", `line 26: priority "-1": expected a number from 1 to 255`, ""},
		{"advert_int 1\n", "advert_int soon\n", `line 27: advert_int "soon": expected 0.01 to 255 seconds`, ""},
		{"version 2", "version 4", `line 23: version "4": expected a number from 2 to 3`, ""},
		{"192.0.2.5/24", "192.0.2.500\n192.0.2.5/24", `line 38: virtual_ipaddress "192.0.2.500": expected an IP address, with or without the length of a prefix`, ""},
		{"192.0.2.5/24", "192.0.2.5/33\n192.0.2.6/24", `line 38: virtual_ipaddress "192.0.2.5/33": expected 192.0.2.5 with a prefix length from 0 to 32`, ""},
		{"vrrp_instance demo_1 {", "vrrp_instance {", "line 41: vrrp_instance: expected vrrp_instance NAME { ... }", ""},
		{"state BACKUP", "state BACKUP {", "line 20: unterminated block", ""},
		{"state BACKUP", "state BACKUP\n}", `line 41: unexpected "}"`, ""},
		{"state BACKUP", "{{ x }}\n{{ y", "line 22: unterminated template action", ""},
		{"        demo_0\n", "        demo_0 demo_1\n", "", "line 13: expected the name of an instance"},
		{"state BACKUP", "state SLEEPY", "", `line 21: state "SLEEPY": expected BACKUP or MASTER`},
		{"state BACKUP", "state \x02}", "", `line 21: state "?}": expected BACKUP or MASTER`},
		{"nopreempt", "preempt_delay 5", "", `line 22: "preempt_delay" is not known in vrrp_instance`},
		{"nopreempt", "state MASTER", "", `line 22: "state" is in vrrp_instance twice`},
		{"priority 40", "priority {{ .Priority }}", "", "line 26: priority: its value is not known"},
		{"auth_type PASS", "auth_type AH", "", `line 29: auth_type "AH": expected PASS`},
		{"192.0.2.11 min_ttl 255", "192.0.2.11 min_ttl 256", "", `line 35: min_ttl "256": expected 1 to 255`},
		{"192.0.2.11 min_ttl 255", "peer\n192.0.2.11", "", "line 35: expected the address of a peer"},
		{"192.0.2.5/24 dev eth0", "192.0.2.5/24 scope link", "", "line 38: expected a VIP, its interface and a label at most"},
		{"lb-path weight 5", "lb-path weight much", "", "line 56: lb-path: expected a number from -254 to 254"},
		{"lb-path weight 5", "moon", "", `line 56: track file "moon" is not defined`},
		{"global_defs {", "vrrp_script x {\n}\nglobal_defs {", "", `line 1: block "vrrp_script" is not known`},
	} {
		testkit.Contains(t, whole, tt.old)
		conf, problems := keepalivedconf.Read([]byte(strings.Replace(whole, tt.old, tt.by, 1)))
		var got []string
		for _, p := range append(problems, conf.Unread...) {
			got = append(got, p.Error())
		}
		want := tt.problem + tt.unread
		if len(got) == 0 || got[0] != want || (len(problems) > 0) != (tt.problem != "") {
			t.Errorf("%q: %q, want %q", tt.by, got, want)
		}
		if strings.Contains(tt.by, "\n192.") && (len(conf.Instances[0].VIPs) != 1 || len(conf.Instances[0].Peers) != 1) {
			t.Errorf("%q is read as %+v", tt.by, conf.Instances[0])
		}
		if tt.by == "virtual_router_id 300" && conf.Instances[0].RouterID != 0 {
			t.Errorf("%s is read as %d", tt.by, conf.Instances[0].RouterID)
		}
	}
}

// A template is parsed except for values that only the node has, and global settings apply to
// instances without their own.
func TestTemplate(t *testing.T) {
	conf, problems := keepalivedconf.Read(testkit.ReadFile(t, "testdata/template.conf"))
	if len(problems) > 0 || !conf.Template || len(conf.Instances) != 1 {
		t.Fatalf("%+v, %v", conf, problems)
	}
	i := conf.Instances[0]
	if i.Version != 3 || i.RouterID != 0 || i.AdvertMS != 0 || len(i.VIPs) != 1 || i.VIP() != netip.MustParsePrefix("192.0.2.5/32") {
		t.Errorf("%+v", i)
	}
	testkit.Equal(t, 4, i.Block.LineOf("advert_int"))
	testkit.Equal(t, keepalivedconf.Hole+"_API", i.Name)
}

// FuzzRead: any text is parsed, or refused with a line.
func FuzzRead(f *testing.F) {
	for _, text := range forms {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		conf, problems := keepalivedconf.Read(text)
		for _, p := range append(problems, conf.Unread...) {
			if p.Line < 1 || p.Code == "" || p.Error() == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
