package report

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// ms is a duration that is encoded as milliseconds, with microsecond precision.
type ms time.Duration

func (d ms) MarshalJSON() ([]byte, error) {
	return json.Marshal(float64(time.Duration(d).Microseconds()) / 1000)
}

// The documents of WriteJSON. Their field names are stable; *_ms are milliseconds, and *_at_ms,
// from_ms and to_ms are relative to the start of the run.
type (
	jsonReport struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Origin     Origin         `json:"origin,omitzero"`
		Machine    []Fact         `json:"machine"`
		Profiles   []string       `json:"profiles"`
		Reference  string         `json:"reference,omitempty"` // one of profiles
		Scenarios  []jsonScenario `json:"scenarios"`
	}
	jsonScenario struct {
		Name    string       `json:"name"`
		Title   string       `json:"title"`
		What    string       `json:"what"`
		VIP     string       `json:"vip"`
		Aim     *jsonAim     `json:"aim,omitempty"`
		Results []jsonResult `json:"results"` // one for each of profiles
	}
	jsonAim struct {
		Profile string `json:"profile,omitempty"` // that it applies to; all if left out
		Median  ms     `json:"median_ms"`
		Worst   ms     `json:"worst_ms"`
		Lost    int    `json:"lost"`
	}
	jsonResult struct {
		Profile       string       `json:"profile"`
		NotApplicable string       `json:"not_applicable,omitempty"` // reason if there are no runs
		Summary       *jsonSummary `json:"summary,omitempty"`        // left out without a valid run
		Runs          []jsonRun    `json:"runs"`
	}
	jsonSummary struct {
		Runs       int      `json:"runs"`             // without failed runs
		Median     ms       `json:"median_outage_ms"` // for an even number, the longer of the middle two
		Worst      ms       `json:"worst_outage_ms"`
		Lost       int      `json:"lost"`                         // maximum of all runs
		Slowest    ms       `json:"slowest_answer_ms"`            // maximum of all runs
		SplitBrain ms       `json:"split_brain_ms"`               // maximum of all runs
		Ratio      *float64 `json:"ratio_to_reference,omitempty"` // ratio of the medians; less than 1 is shorter
		AimMet     *bool    `json:"aim_met,omitempty"`
	}
	jsonRun struct {
		Error      string       `json:"error,omitempty"` // why the run failed; its figures are not valid then
		Outage     ms           `json:"outage_ms"`
		Lost       int          `json:"lost"`
		Asked      int          `json:"asked"`
		Slowest    ms           `json:"slowest_answer_ms"`
		SplitBrain ms           `json:"split_brain_ms"`   // longest time; 0 for none
		Pause      ms           `json:"longest_pause_ms"` // of the client, the precision of all figures
		Fault      ms           `json:"fault_at_ms"`
		Spans      []jsonSpan   `json:"holders"`
		Answers    []jsonAnswer `json:"answers"`
		Events     []jsonEvent  `json:"events"`
		Clients    []jsonClient `json:"clients,omitempty"` // left out if there were none
		Others     *jsonOthers  `json:"others,omitempty"`  // connections to nodes that the fault does not affect
	}
	jsonOthers struct {
		Outage ms  `json:"outage_ms"`
		Lost   int `json:"lost"`
		Asked  int `json:"asked"`
	}
	jsonClient struct {
		Kind    string `json:"kind"`
		Place   string `json:"place"`
		Count   int    `json:"count"`
		Longest ms     `json:"longest_wait_ms"` // maximum of all
		Lost    int    `json:"elections_lost"`
		Stuck   int    `json:"stuck"` // did not recover before the end of the run
	}
	jsonSpan struct {
		VIP  string `json:"vip"`
		Node string `json:"node"`
		From ms     `json:"from_ms"`
		To   ms     `json:"to_ms"`
	}
	jsonAnswer struct {
		From ms   `json:"from_ms"`
		To   ms   `json:"to_ms"`
		OK   bool `json:"ok"`
	}
	jsonEvent struct {
		At   ms     `json:"at_ms"`
		Text string `json:"text"`
	}
)

// WriteJSON writes the report as indented JSON. Lists are never null.
func (r *Report) WriteJSON(w io.Writer) error {
	doc := jsonReport{APIVersion: v1alpha1.APIVersion, Kind: "LabBench", Origin: r.Origin, Machine: append([]Fact{}, r.Machine...), Profiles: append([]string{}, r.Profiles...),
		Reference: r.Reference, Scenarios: []jsonScenario{}}
	for _, s := range r.Scenarios {
		doc.Scenarios = append(doc.Scenarios, r.scenarioJSON(s))
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

func (r *Report) scenarioJSON(s Scenario) jsonScenario {
	doc := jsonScenario{Name: s.Name, Title: s.Title, What: s.What, VIP: s.VIP, Results: []jsonResult{}}
	if a := s.Aim; a != nil {
		doc.Aim = &jsonAim{Profile: a.Profile, Median: ms(a.Median), Worst: ms(a.Worst), Lost: a.Lost}
	}
	for _, one := range s.Results {
		result := jsonResult{Profile: one.Profile, NotApplicable: one.NotApplicable, Summary: r.summaryJSON(s, one), Runs: []jsonRun{}}
		for _, run := range one.Runs {
			result.Runs = append(result.Runs, run.json())
		}
		doc.Results = append(doc.Results, result)
	}
	return doc
}

func (r *Report) summaryJSON(s Scenario, one Result) *jsonSummary {
	median, ok := one.median()
	if !ok {
		return nil
	}
	worst, _ := one.worst()
	doc := &jsonSummary{Runs: len(one.good()), Median: ms(median.Outage), Worst: ms(worst.Outage),
		Lost: one.Lost(), Slowest: ms(one.slowest()), SplitBrain: ms(one.splitBrain())}
	if ratio, ok := r.ratio(s, one); ok {
		ratio = math.Round(ratio*1000) / 1000
		doc.Ratio = &ratio
	}
	if v, ok := s.Verdict(one); ok {
		met := v.met()
		doc.AimMet = &met
	}
	return doc
}

func (r Run) json() jsonRun {
	doc := jsonRun{Error: r.Error, Outage: ms(r.Outage), Lost: r.Lost, Asked: r.Asked, Slowest: ms(r.Slowest),
		SplitBrain: ms(r.SplitBrain),
		Pause:      ms(r.Pause), Fault: ms(r.Fault), Spans: []jsonSpan{}, Answers: []jsonAnswer{}, Events: []jsonEvent{}}
	for _, s := range r.Spans {
		doc.Spans = append(doc.Spans, jsonSpan{VIP: s.VIP, Node: s.Node, From: ms(s.From), To: ms(s.To)})
	}
	for _, a := range r.Answers {
		doc.Answers = append(doc.Answers, jsonAnswer{From: ms(a.From), To: ms(a.To), OK: a.OK})
	}
	if o := r.Others; o != nil {
		doc.Others = &jsonOthers{ms(o.Outage), o.Lost, o.Asked}
	}
	for _, c := range r.Clients {
		doc.Clients = append(doc.Clients, jsonClient{c.Kind, c.Place, c.Count, ms(c.Longest), c.Lost, c.Stuck})
	}
	for _, e := range r.Events {
		doc.Events = append(doc.Events, jsonEvent{At: ms(e.At), Text: e.Text})
	}
	return doc
}
