package haproxy

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestParseProcesses(t *testing.T) {
	const head = "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
	for _, tt := range []struct {
		name, text string
		want       processes
		ok         bool
	}{
		{"2.6", head + "25954           master          2 [failed: 1]   0d00h00m02s     2.6.12\n# workers\n26046           worker          1               0d00h00m01s     2.6.12\n# old workers\n26000           worker          2               0d00h00m01s     2.6.12\n# programs\n\n", processes{reloads: 2, failed: 1, worker: 26046}, true},
		{"2.2", "#<PID>          <type>          <relative PID>  <reloads>       <uptime>        <version>      \n2003            master          0               1               0d00h00m03s     2.2.9\n# workers\n2110            worker          1               0               0d00h00m01s     2.2.9\n# programs\n\n", processes{reloads: 1, worker: 2110}, true},
		{"2.5", head + "7               master          3               0d00h00m02s     2.5\n# workers\n9               worker          0               0d00h00m01s     2.5\n", processes{reloads: 3, worker: 9}, true},
		{"no worker", head + "7               master          1 [failed: 1]   0d00h00m02s     2.6\n# workers\n# programs\n", processes{reloads: 1, failed: 1}, true},
		{"not the master", "Unknown command\n", processes{}, false},
		{"nothing", "", processes{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseProcesses(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseServers(t *testing.T) {
	const head = "# pxname,svname,status,addr,check_status,\n"
	for _, tt := range []struct {
		name, text string
		want       []state.Backend
		ready, ok  bool
	}{
		{"servers alone", head + "api,FRONTEND,OPEN,,,\napi-servers,m0,UP,192.0.2.10:6443,L7OK,\napi-servers,m1,DOWN,[2001:db8::1]:6443,L4CON,\napi-servers,m2,UP 1/2,192.0.2.12:6443,L7STS,\nlistening,m0,UP,192.0.2.10:6443,L4OK,\napi-servers,BACKEND,UP,,,\n",
			[]state.Backend{{Name: "m0", Address: "192.0.2.10:6443", Up: true}, {Name: "m1", Address: "[2001:db8::1]:6443", Up: false}, {Name: "m2", Address: "192.0.2.12:6443", Up: true}}, true, true},
		{"not checked yet", head + "api-servers,m0,UP,192.0.2.10:6443,INI,\n", []state.Backend{{Name: "m0", Address: "192.0.2.10:6443", Up: true}}, false, true},
		{"while it is asked", head + "api-servers,m0,UP,192.0.2.10:6443,* L7OK,\n", []state.Backend{{Name: "m0", Address: "192.0.2.10:6443", Up: true}}, true, true},
		{"none is ready", head + "api-servers,m0,DOWN,192.0.2.10:6443,L7STS,\nlistening,m0,UP,192.0.2.10:6443,L4OK,\n", []state.Backend{{Name: "m0", Address: "192.0.2.10:6443"}}, false, true},
		{"none", head, nil, false, true},
		{"other columns", "# a,b\n", nil, false, false},
		{"nothing", "", nil, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servers, err := parseServers(tt.text)
			if got := backends(servers); !slices.Equal(got, tt.want) || ready(servers) != tt.ready || (err == nil) != tt.ok {
				t.Errorf("got %v, ready %t, %v; want %v", got, ready(servers), err, tt.want)
			}
		})
	}
}

func TestSilentServers(t *testing.T) {
	const head = "# pxname,svname,status,check_status,addr,\n"
	m0 := []string{"m0"}
	for _, tt := range []struct {
		name, text   string
		before, want []string
	}{
		{"one is silent", head + "api-servers,m0,DOWN,L4TOUT,a,\nlistening,m0,DOWN,L4TOUT,a,\nlistening,m1,UP,L4OK,a,\nlistening,BACKEND,UP,,,\n", nil, m0},
		{"while it is asked", head + "listening,m0,DOWN,* L4TOUT,a,\nlistening,m1,UP,* L4OK,a,\n", nil, m0},
		{"one fails once", head + "listening,m0,UP 1/2,L4TOUT,a,\nlistening,m1,UP,L4OK,a,\n", nil, nil},
		{"one refuses", head + "listening,m0,DOWN,L4CON,a,\nlistening,m1,UP,L4OK,a,\n", nil, nil},
		{"one drains", head + "api-servers,m0,DOWN,L7STS,a,\nlistening,m0,UP,L4OK,a,\n", nil, nil},
		{"all are silent", head + "listening,m0,DOWN,L4TOUT,a,\nlistening,m1,DOWN,L4TOUT,a,\nlistening,BACKEND,DOWN,,,\n", nil, nil},
		{"on a compute node", head + "api-servers,m0,DOWN,L4TOUT,a,\napi-servers,m1,UP,L4OK,a,\n", nil, m0},
		{"the others refuse", head + "listening,m0,DOWN,L4TOUT,a,\nlistening,m1,DOWN,L4CON,a,\n", nil, m0},
		{"before its first check", head + "listening,m0,UP 1/2,INI,a,\nlistening,m1,UP,L4OK,a,\n", nil, nil},
		{"before its first check after a reload", head + "listening,m0,UP 1/2,INI,a,\nlistening,m1,UP 1/2,INI,a,\n", m0, m0},
		{"it is back and fails once", head + "listening,m0,UP 1/2,L4TOUT,a,\nlistening,m1,UP,L4OK,a,\n", m0, nil},
		{"it is back", head + "listening,m0,DOWN 1/2,L4OK,a,\nlistening,m1,UP,L4OK,a,\n", m0, nil},
		{"it refuses now", head + "listening,m0,DOWN,L4CON,a,\nlistening,m1,UP,L4OK,a,\n", m0, nil},
		{"it is no server any more", head + "listening,m1,UP,L4OK,a,\n", m0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			servers, err := parseServers(tt.text)
			testkit.Must(t, err)
			testkit.Equal(t, tt.want, silentServers(servers, tt.before))
		})
	}
}

func TestParseVersion(t *testing.T) {
	for out, want := range map[string]string{
		"HA-Proxy version 2.2.9-2+deb11u6 2023/12/23 - https://haproxy.org/\nStatus: long-term\n": "2.2",
		"HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\n":                    "2.6",
		"HAProxy version 3.0.11-1+deb13u3 2026/05/20 - https://haproxy.org/\n":                    "3.0",
		"[NOTICE] something first\nHAProxy version 10.12-dev3 2030/01/01\n":                       "10.12",
		"":                      "",
		"nginx version 1.2.3\n": "",
	} {
		got, err := parseVersion([]byte(out))
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", out, got, err, want)
		}
	}
}

// A session that is not connected to its server yet is retried on another one.
func TestSession(t *testing.T) {
	const head = "0x7f9cb401f510: proto=tcpv4 src=192.0.2.21:34472 fe=api be=api-servers srv=m2 ts=00 age=1s calls=2 rq[f=808000h,i=0,an=00h,ax=] rp[f=80008000h,i=0,an=00h,ax=] "
	for _, tt := range []struct {
		name, line string
		connected  bool
	}{
		{"3.0 connected", head + "scf=[8,0h,fd=27,rex=2h59m,wex=] scb=[8,1h,fd=28,rex=2h59m,wex=] exp=0s rc=0 c_exp=", true},
		{"3.0 connecting", head + "scf=[8,0h,fd=23,rex=59s,wex=] scb=[5,1h,fd=24,rex=,wex=] exp=0s rc=0 c_exp=0s", false},
		{"2.6 connected", head + "scf=[8,0h,fd=17] scb=[8,1h,fd=18] exp=0s rc=0 c_exp=", true},
		{"2.6 connecting", head + "scf=[8,0h,fd=22] scb=[5,1h,fd=23] exp=0s rc=0 c_exp=0s", false},
		{"2.2 connected", head + "s0=[8,200008h,fd=17,ex=] s1=[8,200018h,fd=18,ex=] exp=0s", true},
		{"2.2 connecting", head + "s0=[8,200008h,fd=22,ex=] s1=[5,10h,fd=23,ex=0s] exp=0s", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			if tt.connected {
				want = []string{"0x7f9cb401f510", "m2"}
			}
			found := session().FindStringSubmatch(tt.line)
			testkit.Equal(t, want, found[min(1, len(found)):])
		})
	}
}
