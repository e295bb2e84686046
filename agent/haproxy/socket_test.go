package haproxy

import (
	"slices"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
)

func TestParseProcesses(t *testing.T) {
	const head = "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
	tests := []struct {
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
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseProcesses(tt.text)
			if got != tt.want || (err == nil) != tt.ok {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
}

func TestParseBackends(t *testing.T) {
	const head = "# pxname,svname,status,addr,\n"
	tests := []struct {
		name, text string
		want       []state.Backend
		ok         bool
	}{
		{"servers alone", head + "api,FRONTEND,OPEN,,\napi-servers,m0,UP,192.0.2.10:6443,\napi-servers,m1,DOWN,[2001:db8::1]:6443,\napi-servers,m2,UP 1/2,192.0.2.12:6443,\napi-servers,BACKEND,UP,,\n",
			[]state.Backend{{Name: "m0", Address: "192.0.2.10:6443", Up: true}, {Name: "m1", Address: "[2001:db8::1]:6443", Up: false}, {Name: "m2", Address: "192.0.2.12:6443", Up: true}}, true},
		{"none", head, nil, true},
		{"other columns", "# a,b\n", nil, false},
		{"nothing", "", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseBackends(tt.text)
			if !slices.Equal(got, tt.want) || (err == nil) != tt.ok {
				t.Errorf("got %v, %v; want %v", got, err, tt.want)
			}
		})
	}
}

func TestSilentServers(t *testing.T) {
	const head = "# pxname,svname,status,check_status,\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"one is silent", head + "api-servers,m0,DOWN,L4TOUT,\nlistening,m0,DOWN,L4TOUT,\nlistening,m1,UP,L4OK,\nlistening,BACKEND,UP,,\n", []string{"m0"}},
		{"while it is asked", head + "listening,m0,DOWN,* L4TOUT,\nlistening,m1,UP,* L4OK,\n", []string{"m0"}},
		{"one fails once", head + "listening,m0,UP 1/2,L4TOUT,\nlistening,m1,UP,L4OK,\n", nil},
		{"one refuses", head + "listening,m0,DOWN,L4CON,\nlistening,m1,UP,L4OK,\n", nil},
		{"one drains", head + "api-servers,m0,DOWN,L7STS,\nlistening,m0,UP,L4OK,\n", nil},
		{"all are silent", head + "listening,m0,DOWN,L4TOUT,\nlistening,m1,DOWN,L4TOUT,\nlistening,BACKEND,DOWN,,\n", nil},
		{"the others refuse", head + "listening,m0,DOWN,L4TOUT,\nlistening,m1,DOWN,L4CON,\n", []string{"m0"}},
		{"other columns", "# a,b\n", nil},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := silentServers(tt.text); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
