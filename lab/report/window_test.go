package report

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
)

// A window shows all of each run: the client's lost requests, and the last event.
func TestWindow(t *testing.T) {
	const fault = time.Second
	w := windowOf("192.0.2.5", []timeline.Run{
		{Fault: fault, Answers: []timeline.Answer{{To: fault, OK: true}, {From: fault, To: fault + 3*time.Second}}},
		{Fault: fault, Events: []timeline.Event{{At: fault + 4*time.Second}}},
	})
	if w.From > 0 || w.To < 4*time.Second {
		t.Errorf("window %v", w)
	}
}
