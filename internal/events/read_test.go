package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

const whole = `{"seq":7,"boot":"b","up":1000,"time":"2026-01-01T00:00:00Z","node":"a","kind":"check","name":"api","why":"x"}`

func TestRead(t *testing.T) {
	changed := func(old, new string) string { return strings.Replace(whole, old, new, 1) }
	for name, tt := range map[string]struct {
		in            string
		events        int
		torn, unknown int
	}{
		"none":              {"", 0, 0, 0},
		"one":               {whole + "\n", 1, 0, 0},
		"no end of line":    {whole, 1, 0, 0},
		"torn at the end":   {whole + "\n" + whole[:50], 1, 1, 0},
		"torn in between":   {whole[:50] + "\n" + whole + "\n", 1, 1, 0},
		"torn into another": {whole[:50] + whole + "\n" + whole, 1, 1, 0},
		"zeros":             {whole + "\n" + strings.Repeat("\x00", 4096) + "\n" + whole, 2, 1, 0},
		"long":              {strings.Repeat("x", 3*maxLine) + "\n" + whole, 1, 1, 0},
		"long at the end":   {whole + "\n" + strings.Repeat("x", 3*maxLine), 1, 1, 0},
		"empty lines":       {"\n\n  \r\n" + whole + "\r\n", 1, 0, 0},
		"newer agent":       {changed(`"check"`, `"sunspot"`) + "\n" + changed(`"name"`, `"new":[{}],"name"`), 1, 0, 1},
		"no node":           {changed(`"a"`, `""`), 0, 1, 0},
		"odd node":          {changed(`"a"`, `"a\u001b[2J"`), 0, 1, 0},
		"no time":           {changed(`"2026-01-01T00:00:00Z"`, `"yesterday"`), 0, 1, 0},
		"far time":          {changed(`2026`, `9026`), 0, 1, 0},
		"far instant":       {changed(`"why"`, `"at":"0000-01-01T00:00:00+01:00","why"`), 0, 1, 0},
		"negative":          {changed(`1000`, `-1`), 0, 1, 0},
		"no settings":       {changed(`"check"`, `"settings"`), 0, 1, 0},
		"list":              {"[" + whole + "]", 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list, skipped, err := Read(strings.NewReader(tt.in))
			if len(list) != tt.events || skipped != (Skipped{Torn: tt.torn, Unknown: tt.unknown}) || err != nil {
				t.Errorf("%d events, skipped %+v, error %v", len(list), skipped, err)
			}
		})
	}
}

// The memory for a file is bounded, whatever its content.
func TestReadIsBounded(t *testing.T) {
	list, skipped, err := Read(strings.NewReader(strings.Repeat(whole+"\n", maxEvents+10)))
	if len(list) != maxEvents || !skipped.Beyond || err != nil {
		t.Errorf("%d events, skipped %+v, error %v", len(list), skipped, err)
	}
}

// FuzzRead reads any bytes: the results are valid events, and are written and read back
// unchanged.
func FuzzRead(f *testing.F) {
	f.Add([]byte(whole + "\n" + whole[:40]))
	f.Add([]byte(strings.Replace(whole, `"why"`, `"peers":["192.0.2.1","::"],"terms":[{"name":"x","on":true}],"settings":{},"at":"2026-01-01T00:00:00+01:00","why"`, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, _, err := Read(bytes.NewReader(data))
		testkit.Must(t, err)
		for _, e := range list {
			if e.Time.Location() != time.UTC || len(e.Why) > 2*maxText || len(e.Peers) > maxList || e.Node == "" {
				t.Errorf("%+v", e)
			}
			line, err := json.Marshal(e)
			testkit.Must(testkit.In(t, e), err)
			if again, ok := parse(line); !ok || again.subject() != e.subject() {
				t.Errorf("%s is not read again", line)
			}
		}
	})
}

// A check that flaps all day leaves room for others: events beyond the limit are counted, and
// the final state is recorded.
func TestLimit(t *testing.T) {
	var l limiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var written []Event
	var left uint64
	const n = 24 * 3600
	for i := range n {
		written = append(written, l.admit(Event{Kind: Check, Name: "haproxy", OK: i%2 == 0, Up: Millis(i)}, now)...)
		if i == n/2 {
			written = append(written, l.admit(Event{Kind: Check, Name: "api", Up: Millis(i)}, now)...)
		}
		if i%10 == 0 {
			written = append(written, l.due(now)...)
		}
		now = now.Add(time.Second)
	}
	if !l.waiting() {
		t.Error("nothing was left out")
	}
	written = append(written, l.flush()...)
	api := 0
	for _, e := range written {
		left += e.LeftOut
		if e.Name == "api" {
			api++
		}
	}
	last := written[len(written)-1]
	if len(written) > 3000 || api != 1 || last.Up != n-1 || last.OK || left+uint64(len(written)) != n+1 || l.waiting() {
		t.Errorf("%d written, %d of api, %d left out, the last %+v", len(written), api, left, last)
	}
}

// Events that move a VIP are never dropped, however often it moves; of the dropped delays the
// last and the longest are recorded, since either may be the cause.
func TestMovesAreNeverDropped(t *testing.T) {
	for _, kind := range kinds {
		var l limiter
		now, written := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 0
		for range 10 * burst {
			written += len(l.admit(Event{Kind: kind, Instance: "x"}, now))
		}
		if noisy := (&Event{Kind: kind}).noisy(); noisy != (written == burst) || !noisy && written != 10*burst {
			t.Errorf("%s: %d written", kind, written)
		}
	}

	var l limiter
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 100 {
		l.admit(Event{Kind: Late, Name: "agent", For: 300, Up: Millis(i)}, now)
		l.admit(Event{Kind: Check, Name: "haproxy", OK: i%2 == 0, Up: Millis(i)}, now)
	}
	l.admit(Event{Kind: Late, Name: "agent", For: 2000, Up: 100}, now)
	l.admit(Event{Kind: Late, Name: "agent", For: 300, Up: 101}, now)
	got := l.admit(Event{Kind: Lost, Up: 102}, now)
	if len(got) != 3 || got[0].Kind != Check || got[0].Up != 99 || got[1].For != 2000 || got[1].LeftOut != 41 || got[2].Kind != Lost || l.waiting() {
		t.Errorf("%+v", got)
	}
}

// Invented subjects take no memory.
func TestLimitOfSubjects(t *testing.T) {
	var l limiter
	now := time.Now()
	for i := range 4 * maxSubjects {
		for range 1 + i%2*burst {
			l.admit(Event{Kind: Check, Name: fmt.Sprint(i)}, now)
		}
	}
	if len(l.subjects) > maxSubjects {
		t.Errorf("%d subjects", len(l.subjects))
	}
}

func (l *limiter) waiting() bool {
	for _, a := range l.subjects {
		if a.last != nil {
			return true
		}
	}
	return false
}
