package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// recording is a file that WriteJSON wrote, to make the picture of the front page from.
var recording = flag.String("recording", "testdata/recorded.json", "`file` of 'vipgen lab bench --json' to draw docs/pictures/failover.svg from")

// UnmarshalJSON reads a number of milliseconds.
func (d *ms) UnmarshalJSON(data []byte) error {
	var f float64
	err := json.Unmarshal(data, &f)
	*d = ms(time.Duration(f * float64(time.Millisecond)).Round(time.Microsecond))
	return err
}

// recorded reads the output of WriteJSON.
func recorded(t *testing.T, file string) *Report {
	t.Helper()
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	var doc jsonReport
	testkit.Must(t, json.Unmarshal(data, &doc))
	r := &Report{Origin: doc.Origin, Machine: doc.Machine, Profiles: doc.Profiles, Reference: doc.Reference}
	for _, s := range doc.Scenarios {
		out := Scenario{Name: s.Name, Title: s.Title, What: s.What, VIP: s.VIP}
		if a := s.Aim; a != nil {
			out.Aim = &Aim{a.Profile, time.Duration(a.Median), time.Duration(a.Worst), a.Lost}
		}
		for _, one := range s.Results {
			result := Result{Profile: one.Profile, NotApplicable: one.NotApplicable}
			for _, run := range one.Runs {
				result.Runs = append(result.Runs, run.run())
			}
			out.Results = append(out.Results, result)
		}
		r.Scenarios = append(r.Scenarios, out)
	}
	return r
}

func (r jsonRun) run() Run {
	out := Run{Error: r.Error, Outage: time.Duration(r.Outage), Lost: r.Lost, Asked: r.Asked, Slowest: time.Duration(r.Slowest), Pause: time.Duration(r.Pause)}
	out.SplitBrain, out.Fault = time.Duration(r.SplitBrain), time.Duration(r.Fault)
	for _, s := range r.Spans {
		out.Spans = append(out.Spans, Span{VIP: s.VIP, Node: s.Node, From: time.Duration(s.From), To: time.Duration(s.To)})
	}
	for _, a := range r.Answers {
		out.Answers = append(out.Answers, Answer{From: time.Duration(a.From), To: time.Duration(a.To), OK: a.OK})
	}
	for _, e := range r.Events {
		out.Events = append(out.Events, Event{At: time.Duration(e.At), Text: e.Text})
	}
	for _, c := range r.Clients {
		out.Clients = append(out.Clients, Client{c.Kind, c.Place, c.Count, time.Duration(c.Longest), c.Lost, c.Stuck})
	}
	return out
}

// TestRecorded: a measured benchmark is read and written again without loss.
func TestRecorded(t *testing.T) {
	r := recorded(t, "testdata/recorded.json")
	want, err := os.ReadFile("testdata/recorded.json")
	testkit.Must(t, err)
	var again bytes.Buffer
	if err := r.WriteJSON(&again); err != nil || again.String() != string(want) {
		t.Errorf("read and written again it differs: %v", err)
	}
}

// TestFailoverPicture: the picture of the front page is drawn from a measurement. With -update
// it is redrawn, from -recording.
func TestFailoverPicture(t *testing.T) {
	const picture = "../../docs/pictures/failover.svg"
	var got bytes.Buffer
	testkit.Must(t, recorded(t, *recording).WriteSVG(&got))
	testkit.Kept(t, picture, got.Bytes(), *update)
}
