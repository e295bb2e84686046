package firstboot

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/e2e/rig"
	"github.com/vipgen/vipgen/lab/testbed/probe"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// shutdowns is the number of shutdowns of the holder of each kind; `make e2e` does five.
var shutdowns = flag.Int("shutdowns", 1, "how often the holder of the API VIP is shut down in each way; by default once, in the first way alone")

const (
	// shutdownGap is the time that clients may be without an answer, in the median.
	shutdownGap = 100 * time.Millisecond
	// atOnceGap is the same if every process gets SIGTERM at once (docs/concepts.md).
	atOnceGap = 200 * time.Millisecond
	// drainSeen is the longest time until HAProxy detects that an API server drains.
	drainSeen = 800 * time.Millisecond
	// shutdownDelay is how long an API server that drains continues to serve (its manifest).
	shutdownDelay = 10 * time.Second
)

// way is a way to shut a node down.
type way struct {
	name string
	verb string // of systemctl
	// graceful is set if kubelet ends the pods; else systemd ends their scopes.
	graceful bool
	promised time.Duration // median of the longest times without an answer
}

var ways = []way{
	{"reboot, kubelet ends the pods", "reboot", true, shutdownGap},
	{"power-off, kubelet ends the pods", "poweroff", true, shutdownGap},
	{"reboot, systemd ends the scopes", "reboot", false, atOnceGap},
	{"power-off, systemd ends the scopes", "poweroff", false, atOnceGap},
}

// Hard case 43: the holder of the API VIP is rebooted and powered off by systemctl, with all of
// its processes, including its API server, which drains. A client sends a request every 10 ms
// over new connections.
func TestHardCase43RebootAndPowerOff(t *testing.T) {
	c := newControlPlane(t, installConfig)
	for _, w := range ways[:min(len(ways), max(1, (*shutdowns-1)*len(ways)))] {
		c.shutDownBy(w)
	}
}

// seen holds the client's results of one shutdown.
type seen struct {
	gap, late time.Duration
	last      time.Duration // when the last request to the API server was sent, since it began to drain
}

func (c *controlPlane) shutDownBy(w way) {
	c.t.Helper()
	c.gracefully(w.graceful)
	var gaps []time.Duration
	var late, last time.Duration
	for range *shutdowns {
		s := c.shutDown(w)
		gaps, late, last = append(gaps, s.gap), max(late, s.late), max(last, s.last)
	}
	slices.Sort(gaps)
	median := gaps[len(gaps)/2]
	c.t.Logf("RESULT | %s | %v without an answer (%v) | requests to the API server that drains for %v | machine late by up to %v", w.name, median, gaps, last, late)
	testkit.Promise(c.t, "the median of the longest times without an answer", median, w.promised, 10*w.promised+2*late, late)
	testkit.Promise(c.t, "how long requests reached an API server that drains", last, drainSeen, shutdownDelay, late)
}

// graceful are the lines of kubelet's configuration that make it delay shutdowns, as in
// OpenShift from 4.22 on.
const graceful = "shutdownGracePeriod: 90s\nshutdownGracePeriodCriticalPods: 60s\n"

// gracefully configures whether kubelet ends the pods when its node shuts down.
func (c *controlPlane) gracefully(want bool) {
	c.t.Helper()
	for _, n := range c.nodes {
		const path = "/etc/kubernetes/kubelet.conf"
		before, err := n.Read(path)
		c.must(err)
		text := strings.ReplaceAll(string(before), graceful, "")
		if want {
			text += graceful
		}
		if text != string(before) {
			c.must(n.Write(path, []byte(text)))
			n.run("systemctl", "restart", "kubelet.service")
		}
		testkit.AwaitWithin(c.t, rig.Patience, "kubelet to hold shutdowns up, or not", func() bool {
			return n.active("kubelet.service") && strings.Contains(n.run("systemd-inhibit", "--list", "--no-pager"), "kubelet") == want
		})
	}
}

// shutDown shuts the holder of the VIP down, waits for its end, and powers it on again.
func (c *controlPlane) shutDown(w way) seen {
	t := c.t
	t.Helper()
	c.awaitBoth()
	c.awaitServers()
	holder, other := c.holder()
	since := time.Now()
	p := c.ask(since)
	holders, err := watch.Start(watch.Config{Network: c.network, Nodes: []*netns.Node{holder.Node, other.Node}, VIPs: []netip.Addr{apiVIP}, Since: since})
	c.must(err)
	// Longer than the client's kernel keeps an entry learned by ARP (arp(7), locktime).
	c.must(p.Await(t.Context(), 200))
	machine := testkit.StartStopwatch()
	began := p.Now()
	holder.run("systemctl", w.verb)
	select {
	case <-holder.Ended():
	case <-time.After(rig.Patience):
		t.Fatalf("%s has not ended", holder.Name)
	}
	late := machine.End()
	if at, _ := c.holder(); at != other {
		t.Errorf("%s holds the VIP, which is off", at.Name)
	}
	holders.Off(holder.Name)
	holder.off()
	c.must(p.Await(t.Context(), 100))
	result := p.End()
	timeline, err := holders.End()
	c.must(err)
	result.Requests = slices.DeleteFunc(result.Requests, func(q probe.Request) bool { return q.Sent < began-time.Second })
	drained := holder.drained(since)
	s := seen{gap: result.Gap(), late: late}
	for _, q := range result.Requests {
		if q.From == holder.Name && q.Sent > drained {
			s.last = max(s.last, q.Sent-drained)
		}
	}
	left := holder.lost(timeline)
	for _, q := range result.Requests {
		if q.Err != "" && w.graceful && q.Sent > left {
			t.Errorf("a request was lost whose connection the VIP's move did not break, sent %v after the VIP had left: %s", q.Sent-left, q.Err)
		}
	}
	holder.checkEnd(w, since.Add(began))
	c.powerOn(holder)
	return s
}

// lost returns when the VIP left the node.
func (n *node) lost(timeline watch.Timeline) (at time.Duration) {
	for _, span := range timeline.In(watch.Addresses) {
		if span.Node == n.Name {
			at = span.To
		}
	}
	return at
}

// checkEnd: the machine was shut down in the given way by systemd, and kubelet and the
// keepalived job took part.
func (n *node) checkEnd(w way, since time.Time) {
	n.t.Helper()
	out, err := exec.Command("journalctl", "--directory", n.Path("/var/log/journal"), "--no-pager", fmt.Sprintf("--since=@%d", since.Unix())).CombinedOutput()
	n.site.must(err)
	if want := "Reached target " + w.verb + ".target"; !strings.Contains(string(out), want) {
		n.t.Errorf("%s did not end by %s:\n%s", n.Name, w.verb, tail(string(out)))
	}
	if w.graceful {
		// The end of HAProxy lowers the priority as well, so the VIP may have left before
		// keepalived's own hand-over.
		log := n.podLog(since, "keepalived", "keepalived")
		if running, _, _ := strings.Cut(log, "msg=Stopping daemon=keepalived"); !strings.Contains(running, "Entering BACKUP STATE") {
			n.t.Errorf("%s did not hand its VIP over before keepalived stopped:\n%s", n.Name, tail(log))
		}
	}
}

// drained returns when the node's API server began to shut down, after a time.
func (n *node) drained(since time.Time) time.Duration {
	n.t.Helper()
	log := n.podLog(since, apiServer, apiServer)
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"ShutdownInitiated"`) {
			return logTime(line).Sub(since)
		}
	}
	n.t.Fatalf("the API server of %s did not drain:\n%s", n.Name, tail(log))
	return 0
}

// podLog returns the log of a container of a static pod since a time, from the node's disk.
func (n *node) podLog(since time.Time, pod, container string) string {
	n.t.Helper()
	paths, err := filepath.Glob(n.Path("/var/log/pods/*_" + pod + "-" + n.Name + "_*/" + container + "/*.log"))
	n.site.must(err)
	var lines []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		n.site.must(err)
		for line := range strings.Lines(string(data)) {
			if logTime(line).After(since) {
				lines = append(lines, line)
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return logTime(a).Compare(logTime(b)) })
	return strings.Join(lines, "")
}

// logTime returns the time stamp of a container's line.
func logTime(line string) time.Time {
	stamp, _, _ := strings.Cut(line, " ")
	at, _ := time.Parse(time.RFC3339Nano, stamp) // the last line may be incomplete
	return at
}

// ask starts a client of the VIP.
func (c *controlPlane) ask(since time.Time) *probe.Probe {
	c.t.Helper()
	p, err := probe.Start(probe.Config{Since: since, Target: probe.Target{
		URL: "https://" + netip.AddrPortFrom(apiVIP, 6443).String() + "/version", Timeout: 10 * time.Second, Dial: c.host.DialContext,
	}})
	c.must(err)
	return p
}

// awaitServers waits until the VIP reaches both API servers.
func (c *controlPlane) awaitServers() {
	c.t.Helper()
	var names map[string]bool
	testkit.AwaitWithin(c.t, rig.Patience, "answers from both API servers", func() bool {
		p := c.ask(time.Now())
		c.must(p.Await(c.t.Context(), 20))
		names = map[string]bool{}
		for _, q := range p.End().Requests {
			if q.Err == "" {
				names[q.From] = true
			}
		}
		return len(names) == len(c.nodes)
	}, func() string { return fmt.Sprint(names) })
}

// holder waits until one node alone has the VIP, and returns it and the other one.
func (c *controlPlane) holder() (holder, other *node) {
	c.t.Helper()
	testkit.AwaitWithin(c.t, rig.Patience, "one holder of the VIP", func() bool {
		var with, without []*node
		for _, n := range c.nodes {
			if n.has(apiVIP) {
				with = append(with, n)
			} else {
				without = append(without, n)
			}
		}
		if len(with) != 1 {
			return false
		}
		holder, other = with[0], without[0]
		return true
	})
	return holder, other
}

// has reports whether the VIP is on the node.
func (n *node) has(vip netip.Addr) bool {
	addrs, err := n.Addresses()
	return err == nil && slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == vip })
}
