package doctor

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
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

// causesText has the name of a case after "# ", its script, in which the lines "takes" and "yields"
// stand for these constants, and after "= " its moves, in addition to the first holder a.
//
//go:embed testdata/causes.txt
var causesText string

// causes map recorded events to the expected cause.
var causes = readCauses()

type example struct {
	script string
	want   []string
}

func readCauses() map[string]example {
	out := map[string]example{}
	name := ""
	for line := range strings.Lines(causesText) {
		e := out[name]
		switch mark, rest, _ := strings.Cut(strings.TrimSpace(line), " "); mark {
		case "#":
			name, e = rest, example{}
		case "=":
			e.want = append(e.want, rest)
		case "takes":
			e.script += takes
		case "yields":
			e.script += yields
		default:
			e.script += line
		}
		out[name] = e
	}
	return out
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
