package doctor

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/events"
	"github.com/vipgen/vipgen/internal/testkit"
)

// lines returns events in the form of a file.
func lines(t testing.TB, list []events.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, e := range list {
		line, err := json.Marshal(e)
		testkit.Must(t, err)
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}

// FuzzDiagnose diagnoses arbitrary records: it returns, and its results are in order.
func FuzzDiagnose(f *testing.F) {
	f.Add(lines(f, play(f, holding+takes+yields)))
	f.Add(lines(f, play(f, falls)))
	f.Add(lines(f, play(f, holding+"10 a agent-stopping\n10 a link down\n10 a state FAULT\n9 b holder a b\n"+takes+"11 a agent-started boot\n11 a move classic over\n")))
	files, err := filepath.Glob("../../../examples/export/records/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no records", err)
	}
	for _, name := range files {
		data := testkit.ReadFile(f, name)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, err := events.Read(bytes.NewReader(data))
		testkit.Must(t, err)
		r := Diagnose(list)
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		if !slices.IsSortedFunc(r.Moves, func(a, b Move) int { return a.At.Compare(b.At) }) {
			t.Error("moves are not in order")
		}
		for _, m := range r.Moves {
			if m.Cause.Code == "" || m.Cause.Sure == "" || m.Unheld < 0 || m.SplitBrain < 0 || len(m.Instances) == 0 || m.Cause.Sure == Certain && len(m.Evidence) == 0 {
				t.Errorf("%+v", m)
			}
		}
	})
}

// The order of files, and of duplicate lines, does not matter.
func TestOrderOfInput(t *testing.T) {
	list := play(t, falls)
	want, err := json.Marshal(Diagnose(list))
	testkit.Must(t, err)
	other := append(slices.Clone(list), list...)
	slices.Reverse(other)
	if got, _ := json.Marshal(Diagnose(other)); string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// However long forged records are, a diagnosis is quick: go test's own time limit stops it
// otherwise.
func TestManyEvents(t *testing.T) {
	var list []events.Event
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100_000 {
		e := events.Event{
			Seq: uint64(i), Boot: "b", Up: events.Millis(i), Time: at.Add(time.Duration(i) * time.Millisecond), Node: string(rune('a' + i%3)),
			Instance: "x", Peer: addresses["a"], Priority: 68, Own: 48,
		}
		switch i / 3 % 5 {
		case 0:
			e.Kind, e.State = events.State, events.Master
		case 1:
			e.Kind = events.HigherReceived
		case 2:
			e.Kind, e.Source = events.Instance, addresses[e.Node]
		case 3:
			e.Kind, e.Own, e.Priority = events.Effective, 68, 48
		default:
			e.Kind, e.State = events.State, events.Backup
		}
		list = append(list, e)
	}
	testkit.Equal(t, 3, len(Diagnose(list).Nodes))
}
