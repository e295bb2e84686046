package keepalived

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/internal/testkit/daemon"
	"github.com/vipgen/vipgen/lab/attack"
	"github.com/vipgen/vipgen/lab/netns"
	"github.com/vipgen/vipgen/lab/probe"
)

// floodTime is how long each flood of TestHardCase35Benchmark lasts.
var floodTime = flag.Duration("flood", 0, "measure floods that last this long")

// defended is a set of nodes under attack.
type defended struct {
	t       *testing.T
	net     *netns.Network
	nodes   map[string]*netns.Node
	holders func() []string
	log     func(name string) string
}

// TestHardCase35Benchmark floods a holder with each kind of packet, and prints what that
// does to it, with the guard and without.
func TestHardCase35Benchmark(t *testing.T) {
	testkit.Long(t)
	if *floodTime == 0 {
		t.Skip("it takes both cores for ten minutes: `make bench-guard` runs it, with -flood=1m")
	}
	c := newCluster(t)
	c.controlPlane(3)
	c.holder(c.all()...)
	guarded := defended{t: t, net: c.net, nodes: map[string]*netns.Node{}, holders: c.holders, log: func(name string) string { return c.nodes[name].agent.Output() }}
	members := map[string]daemon.Member{}
	for name, n := range c.nodes {
		guarded.nodes[name] = n.Node
		conf, err := os.ReadFile(n.Path(v1alpha1.KeepalivedConf))
		if err != nil {
			t.Fatal(err)
		}
		members[name] = daemon.Member{Addresses: []netip.Prefix{n.address}, Config: conf}
	}
	b := daemon.NewCluster(t, c.vip, members)
	bare := defended{t: t, net: b.Network, nodes: map[string]*netns.Node{}, holders: b.Holders, log: b.Log}
	for name := range members {
		bare.nodes[name] = b.Node(name)
	}
	for _, d := range []struct {
		name string
		defended
	}{{"with the guard", guarded}, {"without", bare}} {
		d.serve()
		x, client := newIntruder(t, d.net, ipv4.host(66)), daemon.AddNode(t, d.net, "client", ipv4.host(67).String())
		for _, a := range attack.VRRPs {
			out := d.measure(x, client, a)
			t.Logf("%-15s %-18s %s", d.name, a.Name, out)
			if d.name == "with the guard" && (out.moves > 0 || out.lost > 0 || out.log > 10_000) {
				t.Errorf("%s: the guard does not hold: %s", a.Name, out)
			}
		}
	}
}

// damage is what a flood did.
type damage struct {
	moves, lost, requests int
	sent                  int64
	// cpu is the share of a core that the holder's processes took more than before,
	// log what they logged, in bytes a second.
	cpu float64
	log int
}

func (d damage) String() string {
	return fmt.Sprintf("sent %d, moves %d, lost %d of %d, CPU %+.1f %%, log %d B/s", d.sent, d.moves, d.lost, d.requests, 100*d.cpu, d.log)
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

// measure floods the holder of now for floodTime.
func (d *defended) measure(x *intruder, client *netns.Node, a attack.VRRP) (out damage) {
	var held []string
	testkit.Await(d.t, "one holder", func() bool { held = d.holders(); return len(held) == 1 })
	holder := held[0]
	address := func(n *netns.Node) (a netip.Addr) {
		list, err := n.Addresses()
		if err != nil {
			d.t.Fatal(err)
		}
		for _, p := range list {
			if p.Addr().Is4() && p.Addr() != apiVIP {
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
	quiet := d.share(holder, func() { time.Sleep(5 * time.Second) })
	p, err := probe.Start(probe.Config{Target: probe.Target{Dial: client.DialContext, URL: "http://" + apiVIP.String() + ":8080/"}})
	if err != nil {
		d.t.Fatal(err)
	}
	logged := len(d.log(holder))
	f := x.flood(a, apiVIP, peer, address(d.nodes[holder]), 5000)
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
	r := p.End()
	out.sent, out.cpu, out.lost, out.requests = f.Sent(), share-quiet, r.Lost(), len(r.Requests)
	out.log = (len(d.log(holder)) - logged) / int(floodTime.Seconds())
	return out
}

// share is what the processes of a node take of a core while f runs.
func (d *defended) share(name string, f func()) float64 {
	ticks := func() (n float64) {
		out, err := exec.Command("ip", "netns", "pids", d.nodes[name].Namespace()).Output()
		if err != nil {
			d.t.Fatal(err)
		}
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
