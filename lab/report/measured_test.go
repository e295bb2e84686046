package report

import (
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

func TestMeasured(t *testing.T) {
	vip := netip.MustParseAddr("192.0.2.5")
	request := func(sent int, err string) probe.Request {
		at := time.Duration(sent) * ms1
		return probe.Request{Sent: at, Ended: at + 2*ms1, Err: err}
	}
	got := Measured(
		probe.Result{Requests: []probe.Request{request(10, ""), request(20, ""), request(30, "lost"), request(40, "lost"), request(50, "")}},
		watch.Timeline{
			{View: watch.Addresses, VIP: vip, Node: "a", From: 0, To: 25 * ms1},
			{View: watch.Addresses, VIP: vip, Node: "b", From: 22 * ms1, To: 60 * ms1},
			{View: watch.Capture, VIP: vip, Node: "a", From: 0, To: 26 * ms1},
			{View: watch.Capture, VIP: vip, Node: "b", From: 21 * ms1, To: 60 * ms1},
		}, 24*ms1, 4*ms1)
	want := Run{
		Outage: 30 * ms1, Lost: 2, Asked: 5, Slowest: 2 * ms1, Pause: 10 * ms1,
		Run: timeline.Run{
			Fault: 24 * ms1, SplitBrain: 5 * ms1,
			Spans: []Span{{VIP: "192.0.2.5", Node: "a", To: 25 * ms1}, {VIP: "192.0.2.5", Node: "b", From: 22 * ms1, To: 60 * ms1}},
			Answers: []Answer{
				{From: 10 * ms1, To: 30 * ms1, OK: true}, {From: 30 * ms1, To: 50 * ms1}, {From: 50 * ms1, To: 50 * ms1, OK: true},
			},
		},
	}
	testkit.Equal(t, want, got)
}
