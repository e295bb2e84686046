package report

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/page/timeline"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
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

// The whole process: the holder of a VIP fails, a client notices, and the report shows it.
func TestMeasuredPowerLoss(t *testing.T) {
	testkit.Measured(t)
	profiles := map[string]string{"classic": "version 2\n advert_int 1", "fast": "version 3\n advert_int 0.1"}
	r := &Report{Profiles: []string{"classic", "fast"}, Reference: "classic", Scenarios: []Scenario{{Name: "power-loss",
		Title: "The holder loses power", What: "Keepalived alone, on three nodes.", VIP: "192.0.2.5"}}}
	for _, profile := range r.Profiles {
		run, alone := powerLoss(t, profiles[profile])
		// A client without CPU time may not have noticed, nor one of a node that happened to
		// give the VIP up at that moment.
		if !alone {
			t.Logf("%s: another node held the VIP as well, or instead", profile)
		}
		if (run.Outage <= 0 || run.Lost == 0) && run.Pause < tolerated && alone || run.Asked <= run.Lost || run.Slowest <= 0 {
			t.Errorf("%s: outage %v, lost %d of %d", profile, run.Outage, run.Lost, run.Asked)
		}
		r.Scenarios[0].Results = append(r.Scenarios[0].Results, Result{Profile: profile, Runs: []Run{run}})
	}
	var table, page strings.Builder
	testkit.Must(t, r.WriteTable(&table))
	testkit.Must(t, r.WriteHTML(&page))
	t.Logf("\n%s", &table)
	results := r.Scenarios[0].Results
	shown := windowOf("192.0.2.5", []timeline.Run{results[0].Runs[0].Run, results[1].Runs[0].Run})
	run := results[0].Runs[0]
	for _, s := range run.Spans {
		if s.To-run.Fault <= shown.From || s.From-run.Fault > shown.To {
			continue // the first election may have been contested, long before the displayed time
		}
		testkit.Contains(testkit.In(t, s.Node), page.String(), s.Node+" holds the VIP: ")
	}
}

// powerLoss powers the holder off while a client is connected. It reports whether that node
// alone held the VIP.
func powerLoss(t *testing.T, settings string) (run Run, alone bool) {
	t.Helper()
	vip := netip.MustParseAddr("192.0.2.5")
	members := map[string]daemon.Member{}
	var names []string
	for i := range 3 {
		name := fmt.Sprintf("master-%d", i)
		names = append(names, name)
		members[name] = daemon.Member{Addresses: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("192.0.2.1%d/24", i))},
			Config: fmt.Appendf(nil, "vrrp_instance api {\n state BACKUP\n interface eth0\n virtual_router_id 109\n priority %d\n %s\n virtual_ipaddress {\n 192.0.2.5/32\n }\n}\n", 40+i, settings)}
	}
	c := daemon.NewCluster(t, vip, members)
	var nodes []*netns.Node
	for _, name := range names {
		nodes = append(nodes, c.Node(name))
		serve(t, c.Node(name))
	}
	client := daemon.AddNode(t, c.Network, "client", "192.0.2.100/24")
	start := time.Now()
	w, err := watch.Start(watch.Config{Network: c.Network, Nodes: nodes, VIPs: []netip.Addr{vip}, Since: start})
	testkit.Must(t, err)
	defer w.End()
	c.Holder()
	p, err := probe.Start(probe.Config{Target: probe.Target{URL: "http://192.0.2.5/", Dial: client.DialContext}, Since: start})
	testkit.Must(t, err)
	defer p.End()
	await := func(answers int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		testkit.Must(t, p.Await(ctx, answers))
	}
	// The client's kernel keeps an entry learned by ARP for a second, regardless of
	// announcements (arp(7), locktime).
	await(300)
	holder := c.Holder()
	fault := p.Now()
	w.Off(holder)
	c.Crash(holder)
	gone := p.Now()
	await(20)
	timeline, err := w.End()
	testkit.Must(t, err)
	result := p.End()
	for _, q := range result.Requests {
		if q.Err == "" && (!slices.Contains(names, q.From) || q.From == holder && q.Sent > gone) {
			t.Errorf("%q answered %v after the start; %s was off after %v", q.From, q.Sent, holder, gone)
		}
	}
	run = Measured(result, timeline, fault, 50*ms1)
	var had []string
	for _, s := range run.Spans {
		if s.From <= fault && s.To >= fault {
			had = append(had, s.Node)
		}
	}
	return run, slices.Equal(had, []string{holder})
}

// serve answers with the name of the node.
func serve(t *testing.T, node *netns.Node) {
	t.Helper()
	var l net.Listener
	err := node.Do(func() (err error) {
		l, err = net.Listen("tcp4", "0.0.0.0:80")
		return err
	})
	testkit.Must(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, node.Name) })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}
