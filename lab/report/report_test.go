package report

import (
	"bytes"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/internal/testkit"
)

var update = flag.Bool("update", false, "write the expected files anew")

const ms1 = time.Millisecond

// run is a run in which master-0 loses the VIP at 1 s and master-1 acquires it after some time,
// in ms.
func run(outage, lost int) Run {
	gone, back := time.Second, time.Second+time.Duration(outage)*ms1
	return Run{Outage: back - gone, Lost: lost, Asked: 400 + lost, Slowest: 12500 * time.Microsecond, Run: timeline.Run{Fault: gone,
		Spans: []Span{
			{VIP: "192.0.2.5", Node: "master-0", From: 0, To: gone + ms1},
			{VIP: "192.0.2.5", Node: "master-1", From: back - 8*ms1, To: back + 3*time.Second},
			{VIP: "192.0.2.6", Node: "worker-0", From: 0, To: back + 3*time.Second},
		},
		Answers: []Answer{
			{From: 0, To: gone, OK: true}, {From: gone, To: back}, {From: back, To: back + 3*time.Second, OK: true},
		},
		Events: []Event{{At: gone, Text: "the machine of master-0 is switched off"}, {At: back + time.Second, Text: "the client has had 100 answers in a row"}},
	}}
}

// sample has each kind of result, and text that must not become syntax.
func sample() *Report {
	slow := []Run{run(2951, 295), run(3380, 338), run(2890, 289)}
	quick := []Run{run(331, 33), run(364, 36), run(329, 32), run(342, 34)}
	two := run(120, 12)
	two.Events = append(two.Events, Event{At: 1400 * ms1, Text: "master-0 hears master-1 again"}, Event{At: 1405 * ms1, Text: "and gives the VIP up"})
	two.Pause = 71 * ms1
	two.Spans[0].To, two.SplitBrain = time.Second+400*ms1, 288*ms1
	slow[0].Clients = []Client{{"watch", "workers", 4, 30*time.Second + 49*ms1, 0, 0}, {"election", "workers", 4, 13 * time.Second, 3, 0}, {"watch", "outside", 4, 45 * time.Second, 0, 1}}
	slow[1].Clients = []Client{{"watch", "workers", 4, 29 * time.Second, 0, 0}, {"election", "workers", 4, 9 * time.Second, 1, 0}, {"watch", "outside", 4, 31 * time.Second, 0, 0}}
	quick[0].Others, quick[1].Others = &Others{0, 0, 433}, &Others{20 * ms1, 1, 436}
	quick[0].Clients = []Client{{"watch", "workers", 4, 2500 * ms1, 0, 0}, {"election", "workers", 4, 0, 0, 0}}
	evil := "<script>alert('x')</script> \x1b[2J & \"quoted\"\nnext"
	return &Report{
		Origin:    Origin{Date: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Version: "v1.2.3", Cluster: "demo.example.com", Command: "vipgen lab bench --runs 3"},
		Machine:   []Fact{{Name: "cores", Value: "2"}, {Name: "kernel", Value: "6.1.0"}, {Name: "keepalived", Value: "2.2.7"}},
		Profiles:  []string{"classic", "fast", "reference <b>"},
		Reference: "classic",
		Scenarios: []Scenario{
			{Name: "power-loss", Title: "The holder loses power", VIP: "192.0.2.5",
				What: "The machine that holds the API's VIP is switched off: nothing is given away, and the other nodes have to notice by themselves that there are no adverts any more.",
				Aim:  &Aim{Profile: "fast", Median: 350 * ms1, Worst: 500 * ms1, Lost: 50},
				Results: []Result{
					{Profile: "classic", Runs: slow},
					{Profile: "fast", Runs: quick},
					{Profile: "reference <b>", NotApplicable: "it has no such thing"},
				}},
			{Name: "partition", Title: "The network splits", VIP: "192.0.2.5", What: evil,
				Aim: &Aim{Median: 100 * ms1, Worst: 110 * ms1, Lost: 2},
				Results: []Result{
					{Profile: "classic", Runs: []Run{run(0, 0), {Error: evil}}},
					{Profile: "fast", Runs: []Run{two, two}},
					{Profile: "reference <b>", Runs: []Run{{Error: evil}}},
				}},
		},
	}
}

func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		file  string
		write func(*Report, *bytes.Buffer) error
	}{
		{"report.txt", func(r *Report, b *bytes.Buffer) error { return r.WriteTable(b) }},
		{"report.json", func(r *Report, b *bytes.Buffer) error { return r.WriteJSON(b) }},
		{"report.svg", func(r *Report, b *bytes.Buffer) error { return r.WriteSVG(b) }},
	} {
		t.Run(tt.file, func(t *testing.T) {
			var got bytes.Buffer
			testkit.Must(t, tt.write(sample(), &got))
			testkit.Kept(t, filepath.Join("testdata", tt.file), got.Bytes(), *update)
		})
	}
}

func TestAgainst(t *testing.T) {
	for _, tt := range []struct {
		reference, outage time.Duration
		want              string
	}{
		{time.Second, 100 * ms1, "10x shorter"},
		{time.Second, 400 * ms1, "2.5x shorter"},
		{time.Second, 1001 * ms1, "the same"},
		{time.Second, 3 * time.Second, "3x longer"},
		{time.Second, 0, "no outage"},
		{0, time.Second, "-"},
	} {
		s := Scenario{Results: []Result{
			{Profile: "a", Runs: []Run{{Outage: tt.reference}}}, {Profile: "b", Runs: []Run{{Outage: tt.outage}}},
		}}
		r := &Report{Reference: "a"}
		testkit.Equal(testkit.In(t, tt.outage, tt.reference), tt.want, r.against(s, s.Results[1]))
		testkit.Equal(t, "reference", r.against(s, s.Results[0]))
	}
}

func TestHTML(t *testing.T) {
	var out bytes.Buffer
	testkit.Must(t, sample().WriteHTML(&out))
	text := testkit.CheckPage(t, out.Bytes())
	testkit.Equal(t, 7, strings.Count(out.String(), `class="timeline"`))
	for _, want := range []string{"2026-01-31 12:00 UTC", "v1.2.3", "demo.example.com", "vipgen lab bench --runs 3", "the machine of master-0 is switched off",
		"master-0 no longer has the VIP", "the client gets no answer", "master-1 has the VIP", "the client gets answers again"} {
		testkit.Contains(testkit.In(t, want), text, want+"\n")
	}
	if legend, table := strings.Index(text, "split brain: two nodes"), strings.Index(text, "Median and worst are"); legend < 0 || legend > table {
		t.Error("the legend is not before the table")
	}
}

// A window shows all of each run: the client's lost requests, and the last event.
func TestWindow(t *testing.T) {
	lost, late := []Answer{{From: time.Second, To: 4 * time.Second}}, []Event{{At: 5 * time.Second}}
	for want, run := range map[time.Duration]timeline.Run{3 * time.Second: {Answers: lost}, 4 * time.Second: {Events: late}} {
		run.Fault = time.Second
		if w := windowOf("192.0.2.5", []timeline.Run{run}); w.From > 0 || w.To < want {
			t.Errorf("window %v, want to %v", w, want)
		}
	}
}

// The list of a flapping VIP has a limit.
func TestMoments(t *testing.T) {
	r := Run{Run: timeline.Run{Fault: time.Second}}
	for i := range 100 {
		at := time.Second + time.Duration(i)*ms1
		r.Spans = append(r.Spans, Span{VIP: "192.0.2.5", Node: "a", From: at, To: at + ms1})
	}
	got := moments("192.0.2.5", r)
	if last := got[len(got)-1]; len(got) != mostMoments+1 || last.Text != "and 183 more from here on" {
		t.Errorf("%d moments, the last %+v", len(got), last)
	}
}
