package doctor

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// takes makes b miss the holder's advertisements and take the VIP, at second 10.150.
const takes = `
10.150 b silent-holder
10.150 b state MASTER
`

// yields makes b receive advertisements of a again and yield, at second 12.
const yields = `
12.010 b higher-heard a 68 68
12.010 b state BACKUP
`

// causes map recorded events to the expected cause.
var causes = map[string]struct {
	script string
	want   []string // in addition to the first holder a
}{
	"nothing": {"", nil},
	"keepalived is killed": {`
10 a keepalived-died
10.1 a lost
10.2 a keepalived-starting
10.3 a state BACKUP` + takes, []string{"a>b keepalived-died certain unheld 150 split 0"}},
	"keepalived is killed and takes the VIP again": {`
10 a keepalived-died
10.1 a keepalived-starting
10.3 a state MASTER`, []string{"a>a keepalived-died certain unheld 300 split 0"}},
	"HAProxy ends": {`
10 a check redirect the firewall job has not placed it
10.001 a effective-priority 68 48
10.001 b lower-heard a 48
10.120 b silent-holder
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP
11.3 a check haproxy connection refused`, []string{"a>b haproxy-down certain unheld 0 split 1"}},
	"something flushes the redirect": {`
10 a check redirect the firewall job has not placed it
10.001 a effective-priority 68 48
10.120 b silent-holder
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP
30 a check redirect ok`, []string{"a>b redirect-missing certain unheld 0 split 1"}},
	"HAProxy ends slowly": {`
10 a check redirect the firewall job has not placed it
10.001 a effective-priority 68 48
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP
18 a check haproxy connection refused`, []string{"a>b haproxy-down likely unheld 0 split 1"}},
	"the agent is killed, and is back before others miss it": {`
9.9 a check api ok
10.050 a agent-started
10.250 b silent-holder
10.250 b state MASTER
10.3 a state BACKUP`, []string{"a>b agent-killed certain unheld 200 split 0"}},
	"the agent is killed, and others note that late": {`
3 a check api ok
10.050 a agent-started
10.3 a state BACKUP
11.2 b silent-holder delay=1000
11.2 b state MASTER delay=1000`, []string{"a>b agent-killed likely unheld 1150 split 0"}},
	"the agent ends, and can not record that it was told to": {`
9.8 b lower-heard a 40
10.1 b silent-holder
10.1 b state MASTER
11 a agent-started
11.3 a state BACKUP`, []string{"a>b agent-killed likely unheld 150 split 0"}},
	"events of the holder are missing": {takes + `
11 a agent-started missed=3
11.3 a state BACKUP`, []string{"a>b agent-killed likely unheld 150 split 0"}},
	"events were missing long before": {`
2 a check api ok missed=3` + takes + `
25 a check api ok
26 a agent-started
27 a state BACKUP`, []string{"a>b cut-off likely unheld 0 split 14850"}},
	"keepalived does not say that it takes the VIP": {`
10 a keepalived-died
10.2 b held
10.3 a keepalived-starting
10.4 a state BACKUP`, []string{"a>b keepalived-died certain unheld 200 split 0"}},
	"priority falls, and no check is recorded": {`
10.001 a effective-priority 68 48
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP`, []string{"a>b check-failed likely unheld 0 split 1"}},
	"another node gets better": {`
10 b check haproxy ok
10.001 b effective-priority 48 68
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP`, []string{"a>b better-node certain unheld 0 split 1"}},
	"the agent gets a signal to end": {`
10 a agent-stopping
10.001 a effective-priority 68 40
10.120 b silent-holder
10.120 b state MASTER
10.121 a higher-heard b 68 40
10.121 a state BACKUP
12 a agent-stopped
20 a agent-started
20 a state BACKUP`, []string{"a>b agent-stopped certain unheld 0 split 1"}},
	"the agent gets a signal to end, as the check of HAProxy fails": {`
10 a agent-stopping
10.0 a check haproxy refused
10.001 a effective-priority 68 40
10.120 b state MASTER
10.121 a higher-heard b 68 40
10.121 a state BACKUP
12 a agent-stopped`, []string{"a>b agent-stopped certain unheld 0 split 1"}},
	"the agent fails": {`
10 a agent-stopping
10.001 a state BACKUP
10.010 b holder-stops
10.020 b state MASTER
11 a agent-stopped the watch of the network failed`, []string{"a>b agent-failed certain unheld 19 split 0"}},
	"the agent is killed": {takes + `
11 a agent-started
11.3 a state BACKUP`, []string{"a>b agent-killed certain unheld 150 split 0"}},
	"power loss": {takes + `
15 a agent-started boot
16 a state BACKUP`, []string{"a>b node-down certain unheld 150 split 0"}},
	"power loss, or a cut and fencing": {takes + `
70 a agent-started boot
71 a state BACKUP`, []string{"a>b node-down likely unheld 150 split 0"}},
	"a cut, and the agent is killed while it lasts": {takes + `
15 a check api-ready no API server
70 a agent-started
71 a state BACKUP`, []string{"a>b cut-off likely unheld 0 split 4850"}},
	"keepalived hangs until kubelet stops the pod": {takes + `
40 a agent-stopping
40.1 a state BACKUP
41 a agent-stopped`, []string{"a>b cut-off likely unheld 0 split 29950"}},
	"power loss, and the link goes a moment before": {`
10 a link down
10 a state FAULT` + takes + `
18 a agent-started boot
19 a state BACKUP`, []string{"a>b node-down certain unheld 150 split 0"}},
	"the link is lost": {`
10 a link down
10 a state FAULT
10.2 a lost
10.3 a left-out no address of the family` + takes + `
13 a check api-ready no API server`, []string{"a>b link-lost certain unheld 150 split 0"}},
	"all nodes lose their power": {takes + `
46 a agent-started boot
47 b agent-started boot
48 c agent-started boot
49 b state BACKUP
50 a state MASTER`, []string{"a>a all-down certain unheld 40000 split 0"}},
	"all nodes lose their power for minutes": {takes + `
96 a agent-started boot
97 b agent-started boot
98 c agent-started boot
100 a state MASTER`, []string{"a> all-down certain unheld 90000 split 0", ">a first-holder likely unheld 0 split 0"}},
	"all nodes but one lose their power": {takes + `
46 a agent-started boot
47 b agent-started boot
30 c check api ok
50 a state MASTER`, []string{"a>a node-down likely unheld 40000 split 0"}},
	"the link of another interface": {`
9.5 a link down
10 a check haproxy refused
10 a effective-priority 68 48
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP`, []string{"a>b haproxy-down certain unheld 0 split 1"}},
	"a check of another VIP": {`
5 a priority lb-path
9.9 a check haproxy refused
10 a check ingress-router-ready refused
10 a effective-priority 68 48
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP`, []string{"a>b haproxy-down certain unheld 0 split 1"}},
	"a check of another VIP alone": {`
5 a priority lb-path
10 a check ingress-router-ready refused
10 a effective-priority 68 48
10.120 b state MASTER
10.121 a higher-heard b 68 48
10.121 a state BACKUP`, []string{"a>b check-failed likely unheld 0 split 1"}},
	"the node leaves another VIP out": {`
10 a keepalived-reload
10 a state BACKUP
10.5 a left-out ingress: why` + takes, []string{"a>b left-out likely unheld 150 split 0"}},
	"the node leaves the VIP out": {`
10 a keepalived-stopped
10 a state BACKUP
10.5 a left-out this node is not registered with the cluster` + takes, []string{"a>b left-out certain unheld 150 split 0"}},
	"the network is cut": {takes + yields + `
12.001 a lower-heard b 68 68`, []string{"a>a(b) cut-off certain unheld 0 split 1860"}},
	"advertisements are lost for a moment": {takes + `
10.200 b higher-heard a 68 68
10.200 b state BACKUP
12 a check api ok`, []string{"a>a cut-off likely unheld 0 split 50"}},
	"the holder stands still": {takes + yields + `
12.000 a late keepalived 1990`, []string{"a>a(b) node-late certain unheld 0 split 1860"}},
	"the holder stands still and has to yield": {takes + `
12.000 a late agent 1990
12.010 a higher-heard b 68 68
12.010 a state BACKUP`, []string{"a>b node-late likely unheld 0 split 1860"}},
	"the holder stands still, and notes that late": {takes + yields + `
12.9 a late keepalived 1990 delay=900`, []string{"a>a(b) node-late certain unheld 0 split 1860"}},
	"the holder stands still, and its keepalived says nothing": {takes + yields + `
12.000 a late agent 1890
12.001 a lower-heard b 68 68`, []string{"a>a(b) node-late likely unheld 0 split 1860"}},
	"the holder stands still, and the VIP moves again soon": {takes + yields + `
12.000 a late keepalived 1990
20 a keepalived-died
20.150 b silent-holder
20.150 b state MASTER`, []string{"a>a(b) node-late certain unheld 0 split 1860", "a>b keepalived-died certain unheld 150 split 0"}},
	"nothing shows that the holder ran": {takes + yields, []string{"a>a(b) cut-off likely unheld 0 split 1860"}},
	"the network is cut while the holder's agent is late": {takes + `
10.9 a late agent 700` + yields + `
12.001 a lower-heard b 68 68`, []string{"a>a(b) cut-off likely unheld 0 split 1860"}},
	"the network is cut while the other's agent is late": {takes + `
10.151 b late agent 300` + yields + `
12.001 a lower-heard b 68 68`, []string{"a>a(b) cut-off likely unheld 0 split 1860"}},
	"the network is cut, and the record goes on later": {takes + yields + `
30 a check api ok`, []string{"a>a(b) cut-off certain unheld 0 split 1860"}},
	"the holder was paused, and the network is cut for longer": {takes + `
10.200 a late keepalived 190
20 b higher-heard a 68 68
20 b state BACKUP
20 a lower-heard b 68 68`, []string{"a>a(b) cut-off certain unheld 0 split 9850"}},
	"the node that takes it was paused": {takes + `
10.151 b late keepalived 900
10.200 b higher-heard a 68 68
10.200 b state BACKUP
12 a check api ok`, []string{"a>a node-late likely unheld 0 split 50"}},
	"another host": {`
10 a higher-heard x 255 68
10 a state BACKUP`, []string{"a> another-host certain unheld 0 split 0"}},
	"a migration": {`
10 a keepalived-reload
10 b keepalived-reload
10.1 a state BACKUP
10.2 b state MASTER
10.6 a settings classic
10.6 a move classic over`, []string{"a>b settings-changed certain unheld 100 split 0"}},
	"the router fails": {`
10 a check ingress-router-answers connection refused
10.01 a state FAULT
10.02 b holder-stops
10.03 b state MASTER`, []string{"a>b router-down certain unheld 20 split 0"}},
	"state FAULT for no reason": {`
10.01 a state FAULT
10.03 b state MASTER`, []string{"a>b check-failed likely unheld 20 split 0"}},
	"state BACKUP for no reason": {`
10.01 a state BACKUP
10.03 b state MASTER`, []string{"a>b unknown unknown unheld 20 split 0"}},
	"two hold it for long": {takes + `
90 b higher-heard a 68 68
90 b state BACKUP
91 a lower-heard b 68 68`, []string{"a>a+b cut-off certain unheld 0 split 79850", "a+b>a heard-again certain unheld 0 split 0"}},
}

func TestCause(t *testing.T) {
	for name, tt := range causes {
		t.Run(name, func(t *testing.T) {
			r := Diagnose(play(t, holding+tt.script))
			got := []string{}
			for i := range r.Moves {
				got = append(got, brief(&r.Moves[i]))
			}
			want := append([]string{">a first-holder likely unheld 0 split 0"}, tt.want...)
			testkit.Equal(t, want, got)
			for _, m := range r.Moves {
				if m.Cause.Text == "" || m.Cause.Sure == Certain && len(m.Evidence) == 0 || (m.Cause.Sure == Likely) != (m.Cause.Or != "") ||
					m.Cause.Code == LeftOut && (m.Cause.Next != "") != (m.Cause.Sure == Certain) {
					t.Errorf("%+v", m)
				}
			}
		})
	}
}

// Without the holder's record nothing is certain.
func TestNoRecordOfTheHolder(t *testing.T) {
	const b = "0 b agent-started boot\n0 b settings fast\n0 b instance a c\n1 b state BACKUP\n5 b holder a master-0\n"
	for name, tt := range map[string]struct{ script, want string }{
		"silent":  {b + takes, ">b no-record unknown unheld 0 split 0"},
		"goodbye": {b + "10 b holder-stops\n10.02 b state MASTER\n", ">b no-record unknown unheld 0 split 0"},
		"unknown": {"0 b agent-started boot\n0 b instance a c\n" + takes, ">b first-holder likely unheld 0 split 0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Diagnose(play(t, tt.script))
			if len(r.Moves) != 1 || brief(&r.Moves[0]) != tt.want || len(r.Missing) != 2 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The record of the node that takes the VIP is missing: other nodes recorded the new holder,
// and no record shows a time without one.
func TestNoRecordOfTheNextHolder(t *testing.T) {
	const script = holding + `
10 a check haproxy refused
10 a effective-priority 68 48
10.121 a higher-heard b 68 48
10.121 a state BACKUP
15 c holder b master-1
500 a check haproxy ok
`
	const later = "\n400 b agent-started\n400 b instance a c\n401 b state MASTER\n"
	var list []events.Event
	for _, e := range play(t, script) {
		if e.Node != "b" {
			list = append(list, e)
		}
	}
	r := Diagnose(list)
	if len(r.Moves) != 2 || brief(&r.Moves[1]) != "a>master-1 haproxy-down certain unheld 0 split 0" {
		t.Errorf("%+v", r.Moves)
	}
	r = Diagnose(append(list, play(t, later)...)) // nothing shows that its clock is right
	if len(r.Moves) != 3 || brief(&r.Moves[1]) != "a>master-1 haproxy-down likely unheld 0 split 0" || r.Moves[2].Unheld != 0 {
		t.Errorf("%+v", r.Moves)
	}
}

// A file begins with the current state: the same event as before, or the only trace of dropped
// ones.
func TestRotatedRecords(t *testing.T) {
	list := play(t, holding+`
10 a keepalived-died
10.1 a lost
10.2 a keepalived-starting
10.3 a state BACKUP`+takes)
	want := Diagnose(list)
	var last []events.Event // by subject
	for _, e := range list {
		if e.Up < 105_000 {
			e.Again = true
			e.Seq += 1000
			last = append(last, e)
		}
	}
	both, err := json.Marshal(Diagnose(append(slices.Clone(list), last...)).Moves)
	testkit.Must(t, err)
	alone, _ := json.Marshal(Diagnose(append(last, list[len(last):]...)).Moves)
	if moves, _ := json.Marshal(want.Moves); string(both) != string(moves) || string(alone) != string(moves) {
		t.Errorf("got\n%s\n%s\nwant\n%s", both, alone, moves)
	}
}
