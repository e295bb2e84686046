package keepalived

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/attack"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/vrrp"
)

// floodTime is how long each flood of TestHardCase35Benchmark lasts.
var floodTime = flag.Duration("flood", time.Minute, "how long each flood lasts")

// defended is a set of nodes under attack.
type defended struct {
	t *testing.T
	layout
	net     *netns.Network
	nodes   map[string]*netns.Node
	holders func() []string
	log     func(name string) string
}

// floodRuns are groups that are flooded, by their settings.
var floodRuns = []struct {
	name string
	layout
	kept, mode string
}{
	{"fast, IPv4", ipv4, unicastKept, ""},
	{"fast, IPv6", ipv6, unicastKept, ""},
	{"classic, IPv4", ipv4, classicKept, "mode: unicast\nprofile: classic\n"},
	{"multicast, IPv4", ipv4, multicastKept, "mode: multicast\n"},
}

// TestHardCase35Benchmark floods a holder with each kind of packet, and prints a table of the
// effects, with the guard and without.
func TestHardCase35Benchmark(t *testing.T) {
	testkit.Only(t, "bench-guard")
	testkit.Live(t)
	table := strings.Builder{}
	fmt.Fprintf(&table, "5,000 packets a second for %v each:\n\n| VRRP settings | flood | guard | VIP moves | lost requests | of a core more | log, B/s |\n|---|---|---|---|---|---|---|\n", *floodTime)
	defer func() { t.Log("\n" + table.String()) }()
	for _, run := range floodRuns {
		t.Run(run.name, func(t *testing.T) {
			c := newMembers(t, run.layout, run.kept, run.mode)
			c.awaitRunning()
			c.holder(c.all()...)
			settings := *readSettings(c.nodes["cp-1"].Path(keptSettings))
			guarded := defended{t: t, layout: run.layout, net: c.net, nodes: map[string]*netns.Node{}, holders: c.holders, log: func(name string) string { return c.nodes[name].agent.Output() }}
			members := map[string]daemon.Member{}
			for name, n := range c.nodes {
				guarded.nodes[name] = n.Node
				conf := testkit.ReadFile(t, n.Path(v1alpha1.KeepalivedConf))
				members[name] = daemon.Member{Addresses: []netip.Prefix{n.address}, Config: conf}
			}
			b := daemon.NewCluster(t, run.apiVIP, members)
			bare := defended{t: t, layout: run.layout, net: b.Network, nodes: map[string]*netns.Node{}, holders: b.Holders, log: b.Log}
			for name := range members {
				bare.nodes[name] = b.Node(name)
			}
			for _, d := range []struct {
				guard string
				defended
			}{{"yes", guarded}, {"no", bare}} {
				d.serve()
				x, client := newIntruder(t, d.net, run.host(66)), daemon.AddNode(t, d.net, "client", run.host(67).String())
				for _, a := range attack.VRRPs {
					a = a.Against(settings)
					out, note := d.measure(x, client, a, settings.Mode), ""
					switch {
					case !a.Filtered(settings):
						note = " (passes)"
					case d.guard == "yes" && (out.moves > 0 || out.lost > 0 || out.log > 10_000):
						t.Errorf("%s: the guard does not hold: %+v", a.Name, out)
					}
					fmt.Fprintf(&table, "| %s | %s%s | %s | %d | %d of %d | %+.1f %% | %d |\n", run.name, a.Name, note, d.guard, out.moves, out.lost, out.requests, 100*out.cpu, out.log)
				}
			}
		})
	}
}

// damage is the effect of a flood.
type damage struct {
	moves, lost, requests int
	// cpu is the additional share of a core that the holder's processes used, log their log
	// volume in bytes per second.
	cpu float64
	log int
}

// serve answers every connection to port 8080 of the nodes.
func (d *defended) serve() {
	for name, n := range d.nodes {
		l := listen(d.t, n, ":8080")
		d.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go answer(c, name)
			}
		}()
	}
}

func answer(c net.Conn, name string) {
	defer c.Close()
	c.Read(make([]byte, 1024))
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(name), name)
	io.Copy(io.Discard, c)
}

// measure floods the current holder for floodTime.
func (d *defended) measure(x *intruder, client *netns.Node, a attack.VRRP, mode v1alpha1.Mode) (out damage) {
	var held []string
	testkit.Await(d.t, "one holder", func() bool { held = d.holders(); return len(held) == 1 })
	holder := held[0]
	address := func(n *netns.Node) (a netip.Addr) {
		list, err := n.Addresses()
		testkit.Must(d.t, err)
		for _, p := range list {
			if d.host(1).Masked().Contains(p.Addr()) && p.Addr() != d.apiVIP {
				a = p.Addr()
			}
		}
		return a
	}
	var peer netip.Addr
	for name, n := range d.nodes {
		if name != holder {
			peer = address(n)
		}
	}
	quiet := d.share(holder, func() { time.Sleep(min(5*time.Second, *floodTime)) })
	stop := ask(client, "http://"+netip.AddrPortFrom(d.apiVIP, 8080).String()+"/")
	logged := len(d.log(holder))
	to := address(d.nodes[holder])
	if mode == v1alpha1.ModeMulticast {
		to = vrrp.MulticastGroup(to.Is6())
	}
	f := x.flood(a, d.apiVIP, peer, to, 5000)
	share := d.share(holder, func() {
		last := held
		for end := time.Now().Add(*floodTime); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if now := d.holders(); !slices.Equal(now, last) {
				last = now
				out.moves++
			}
		}
	})
	f.Stop()
	out.requests, out.lost = stop()
	out.cpu = share - quiet
	out.log = (len(d.log(holder)) - logged) / max(1, int(floodTime.Seconds()))
	return out
}

// ask sends a request every 10 ms from a node, each over a new connection, until it is stopped.
func ask(from *netns.Node, url string) (stop func() (requests, lost int)) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}}
	var sent, failed atomic.Int64
	var all sync.WaitGroup
	end := make(chan struct{})
	all.Go(func() {
		for tick := time.Tick(10 * time.Millisecond); ; {
			select {
			case <-end:
				return
			case <-tick:
			}
			sent.Add(1)
			all.Go(func() {
				response, err := client.Get(url)
				if err != nil {
					failed.Add(1)
					return
				}
				response.Body.Close()
			})
		}
	})
	return func() (int, int) {
		close(end)
		all.Wait()
		return int(sent.Load()), int(failed.Load())
	}
}

// share returns the CPU share of the node's processes while f runs.
func (d *defended) share(name string, f func()) float64 {
	ticks := func() (n float64) {
		out, err := exec.Command("ip", "netns", "pids", d.nodes[name].Namespace()).Output()
		testkit.Must(d.t, err)
		for _, pid := range strings.Fields(string(out)) {
			if pid == strconv.Itoa(os.Getpid()) {
				continue
			}
			data, _ := os.ReadFile("/proc/" + pid + "/stat")
			_, rest, _ := strings.Cut(string(data), ") ")
			if fields := strings.Fields(rest); len(fields) > 13 {
				for _, t := range fields[11:13] { // utime and stime: proc_pid_stat(5)
					v, _ := strconv.ParseFloat(t, 64)
					n += v
				}
			}
		}
		return n
	}
	before, began := ticks(), time.Now()
	f()
	const perSecond = 100 // USER_HZ
	return (ticks() - before) / perSecond / time.Since(began).Seconds()
}
