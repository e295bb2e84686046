package lab

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/probe"
)

// run runs a program on the client and returns what it printed.
func (c *cluster) run(name string, args ...string) (string, error) {
	out, err := c.Client.Command(c.t.Context(), name, args...).CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// dig queries a name server and returns the sorted answers and the status, such as NOERROR.
func (c *cluster) dig(server netip.Addr, name, kind string) (answers []string, status string) {
	c.t.Helper()
	out, err := c.run("dig", "@"+server.String(), "+tries=1", "+time=2", "+noall", "+comments", "+answer", name, kind)
	if err != nil {
		return nil, out
	}
	for line := range strings.Lines(out) {
		if _, rest, ok := strings.Cut(line, "status: "); ok {
			status, _, _ = strings.Cut(rest, ",")
		}
		if f := strings.Fields(line); len(f) == 5 && f[3] == kind {
			answers = append(answers, f[4])
		}
	}
	slices.Sort(answers)
	return answers, status
}

// awaitDNS waits until a name server gives these answers; none means NOERROR without data.
func (c *cluster) awaitDNS(t *testing.T, server netip.Addr, name, kind string, want ...string) {
	t.Helper()
	var got []string
	var status string
	defer func() {
		show(t, fmt.Sprintf("dig @%v %s %s", server, name, kind), strings.TrimSpace(status+" "+strings.Join(got, " ")))
	}()
	testkit.Await(t, fmt.Sprintf("%v to answer %s %s with %q", server, name, kind, want), func() bool {
		got, status = c.dig(server, name, kind)
		return status == "NOERROR" && slices.Equal(got, want)
	})
}

// inFlight bounds the requests of a client lost when their server ends: those in flight. An
// answer takes a few milliseconds, and many more on a busy machine.
const inFlight = 5

// vipProbe is a client that sends requests to a VIP continuously.
type vipProbe struct {
	*probe.Probe
	vip     netip.Addr
	url     string
	every   time.Duration
	machine *testkit.Stopwatch
}

func (c *cluster) startProbe(t *testing.T, vip netip.Addr) vipProbe {
	t.Helper()
	return c.startProbeOf(t, vip, "/readyz", probe.LiveEvery)
}

// startProbeOf sends requests to the API at a VIP.
func (c *cluster) startProbeOf(t *testing.T, vip netip.Addr, path string, every time.Duration) vipProbe {
	t.Helper()
	return c.asks(t, vip, every, probe.Target{URL: "https://" + netip.AddrPortFrom(vip, 6443).String() + path})
}

func (c *cluster) asks(t *testing.T, vip netip.Addr, every time.Duration, at probe.Target) vipProbe {
	t.Helper()
	at.Timeout = cmp.Or(at.Timeout, 10*time.Second)
	if at.Dial == nil {
		at.Dial = c.Client.DialContext
	}
	p, err := probe.Start(probe.Config{Every: every, Target: at})
	testkit.Must(t, err)
	t.Cleanup(func() { p.End() })
	a := vipProbe{p, vip, at.URL, every, testkit.StartStopwatch()}
	t.Cleanup(func() { a.machine.End() })
	a.answers(t, 10)
	return a
}

// answers waits until n more requests in a row were answered.
func (p vipProbe) answers(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	testkit.Must(t, p.Await(ctx, n))
}

// answersFor waits until all requests of a duration were answered.
func (p vipProbe) answersFor(t *testing.T, d time.Duration) {
	t.Helper()
	p.answers(t, int(d/p.every))
}

// expect ends the probe, prints its results, and fails the test if more requests than that got
// no answer. All nodes of the lab share this machine: if it is late, their checks time out, and
// VIPs move without a fault.
func (p vipProbe) expect(t *testing.T, lost int) {
	t.Helper()
	r, late := p.End(), p.machine.End()
	text := fmt.Sprintf("%d requests, %d without an answer; longest time between two answers %v", len(r.Requests), r.Lost(), r.Gap().Round(time.Millisecond))
	for _, why := range slices.Sorted(maps.Keys(r.Errors())) {
		text += fmt.Sprintf("\n%d times: %s", r.Errors()[why], why)
	}
	show(t, fmt.Sprintf("while :; do curl -k %s & sleep %v; done", p.url, p.every.Seconds()), text)
	testkit.Promise(t, fmt.Sprintf("requests to %v without an answer, of %d", p.vip, len(r.Requests)), r.Lost(), lost, lost+len(r.Requests)/10, late)
}

// stays fails the test if the probe's VIP is not on its previous node, on a machine that was on
// time throughout. The probe has ended.
func (p vipProbe) stays(t *testing.T, was, now *node) {
	t.Helper()
	moves := 0
	if now != was {
		moves = 1
	}
	testkit.Promise(t, fmt.Sprintf("moves of %v, which went from %s to %s", p.vip, was.Name, now.Name), moves, 0, 1, p.machine.End())
}
