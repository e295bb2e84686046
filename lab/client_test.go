package lab

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/lab/netns"
)

// run runs a program on the client and returns what it printed.
func (c *cluster) run(name string, args ...string) (string, error) {
	out, err := c.client.Command(c.t.Context(), name, args...).CombinedOutput()
	return strings.TrimRight(string(out), "\n"), err
}

// dig asks a name server and returns the sorted answers and the status, such as
// NOERROR.
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

// awaitDNS waits until a name server gives these answers; without any that is
// NOERROR all the same.
func (c *cluster) awaitDNS(t *testing.T, server netip.Addr, name, kind string, want ...string) {
	t.Helper()
	var got []string
	var status string
	defer func() {
		show(t, fmt.Sprintf("dig @%v %s %s", server, name, kind), strings.TrimSpace(status+" "+strings.Join(got, " ")))
	}()
	await(t, fmt.Sprintf("%v to answer %s %s with %q", server, name, kind, want), func() bool {
		got, status = c.dig(server, name, kind)
		return status == "NOERROR" && slices.Equal(got, want)
	})
}

// probe is a client that asks for a URL over and over, each time over a new
// connection, and does not wait for one answer before it asks again.
type probe struct {
	vip  netip.Addr
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	asked int
	lost  []string // the errors
	gap   time.Duration
	last  time.Time // the last answer
}

// probeEvery is the time between two requests.
const probeEvery = 25 * time.Millisecond

// inFlight is how many requests may be lost when what serves them ends: those
// that it has already. An answer takes a few milliseconds, on a busy machine many.
const inFlight = 10

// startProbe asks https://VIP:6443/readyz from the client.
func (c *cluster) startProbe(t *testing.T, vip netip.Addr) *probe {
	t.Helper()
	p := &probe{vip: vip, stop: make(chan struct{}), done: make(chan struct{}), last: time.Now()}
	client := httpClient(c.client)
	url := "https://" + netip.AddrPortFrom(vip, 6443).String() + "/readyz"
	go func() {
		defer close(p.done)
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		var all sync.WaitGroup
		defer all.Wait()
		for {
			all.Go(func() { p.note(getOnce(client, url)) })
			select {
			case <-p.stop:
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { p.end() })
	p.answers(t, 10)
	return p
}

func httpClient(node *netns.Node) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // curl -k
		DialContext:       node.DialContext,
	}}
}

func getOnce(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func (p *probe) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if err != nil {
		p.lost = append(p.lost, err.Error())
		return
	}
	select {
	case <-p.stop: // nobody asks any more, so that pauses say nothing
		return
	default:
	}
	now := time.Now()
	p.gap = max(p.gap, now.Sub(p.last))
	p.last = now
}

// answers waits until n more requests were answered.
func (p *probe) answers(t *testing.T, n int) {
	t.Helper()
	count := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.asked - len(p.lost)
	}
	before := count()
	await(t, fmt.Sprintf("%d more answers", n), func() bool { return count() >= before+n })
}

// end stops the probe; requests that have no answer yet are waited for.
func (p *probe) end() {
	p.mu.Lock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
	p.mu.Unlock()
	<-p.done
}

// expect ends the probe, shows what it saw, and fails the test if more requests
// than that got no answer.
func (p *probe) expect(t *testing.T, lost int) {
	t.Helper()
	p.end()
	text := fmt.Sprintf("%d requests, %d without an answer; longest time between two answers %v", p.asked, len(p.lost), p.gap.Round(time.Millisecond))
	if len(p.lost) > 0 {
		text += "\nthe first: " + p.lost[0]
	}
	show(t, fmt.Sprintf("while :; do curl -k https://%s/readyz & sleep %v; done", netip.AddrPortFrom(p.vip, 6443), probeEvery.Seconds()), text)
	if len(p.lost) > lost {
		t.Errorf("%d requests got no answer, at most %d may", len(p.lost), lost)
	}
}
