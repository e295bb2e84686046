package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/control"
)

// TestWatchStatus: without a terminal blocks follow each other, until the lab or ctx ends.
func TestWatchStatus(t *testing.T) {
	ticks := make(chan time.Time, 9)
	for range cap(ticks) {
		ticks <- time.Now()
	}
	gone := errors.New("no lab")
	for _, tt := range []struct {
		format        command.Format
		between, head string
	}{{"text", "\n\n", "lab demo "}, {"json", "}\n{", `"kind": "LabStatus"`}} {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		a := &app{Console: command.Console{Out: &out}}
		asked := 0
		ask := func(context.Context) (*control.Status, error) {
			if asked++; asked == 3 {
				return nil, gone
			}
			return &control.Status{Name: "demo", VIPs: []control.VIP{}, Nodes: []control.Node{}}, nil
		}
		if err := a.watchStatus(ctx, ask, ticks, tt.format); !errors.Is(err, gone) {
			t.Errorf("%s: %v", tt.format, err)
		}
		if got := out.String(); strings.Count(got, tt.head) != 2 || !strings.Contains(got, tt.between) || strings.Contains(got, "\x1b") {
			t.Errorf("%s:\n%s", tt.format, got)
		}
		asked = -1
		cancel()
		testkit.Check(testkit.In(t, tt.format), a.watchStatus(ctx, ask, ticks, tt.format))
	}
}

// TestPaint: a screen overwrites the previous one, and is cut to the space above its foot.
func TestPaint(t *testing.T) {
	for height, want := range map[int]string{4: "a\x1b[K\r\nb\x1b[K\r\n\x1b[K\r\nfoot", 9: "a\x1b[K\r\nb\x1b[K\r\nc\x1b[K\r\n\x1b[K\r\nfoot", 0: "\x1b[K\r\nfoot"} {
		var out bytes.Buffer
		lines := []string{"a", "b", "c"}
		testkit.Must(t, paint(&out, lines, "foot", height))
		testkit.Equal(t, "\x1b[H"+want+"\x1b[K\x1b[J", out.String())
		testkit.Equal(t, []string{"a", "b", "c"}, lines)
	}
}
