package externallb

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/host"
)

// tooSlow is less than the time after which a backup takes over without advertisements: three
// intervals of 40 ms and the skew.
const tooSlow = 60 * time.Millisecond

var allAPIs = []string{"master-0", "master-1", "master-2"}

// TestExternalTraffic sends traffic through a pair.
func TestExternalTraffic(t *testing.T) {
	t.Parallel()
	o := newCluster(t)
	o.balance("--bootstrap-gone")
	o.serving(allAPIs...)
	o.reaches()
	o.keepsOut()
	o.apis["master-1"].kill()
	o.serving("master-0", "master-2")
	o.apis["master-2"].draining.Store(true)
	o.serving("master-0")
}

// reaches checks that every service at every VIP reaches the right hosts, for clients in the
// machine networks and beyond.
func (o *outside) reaches() {
	o.t.Helper()
	workers, infra := []string{"worker-0", "worker-1"}, []string{"infra-0", "infra-1"}
	tests := []struct {
		scheme, vip string
		port        int
		want        []string
	}{
		{"https", apiVIP, 6443, allAPIs},
		{"https", apiVIP6, 6443, allAPIs},
		{"https", mgmtVIP, 6443, allAPIs},
		{"https", mgmtVIP6, 6443, allAPIs},
		{"https", ingressVIP, 443, workers},
		{"https", ingressVIP6, 443, workers},
		{"http", ingressVIP, 80, workers},
		{"http", ingressVIP6, 80, workers},
		{"https", blueVIP, 443, infra},
		{"https", blueVIP6, 443, infra},
		{"http", blueVIP, 80, infra},
		{"http", blueVIP6, 80, infra},
	}
	for _, client := range []*netns.Node{o.inside, o.beyond} {
		for _, tt := range tests {
			var who string
			var err error
			o.await(fmt.Sprintf("%s to get an answer from %s:%d", client.Name, tt.vip, tt.port), func() bool {
				who, err = get(client, tt.scheme, tt.vip, tt.port, "/")
				return err == nil
			})
			o.t.Logf("%s asks %s, port %d: %s answers", client.Name, tt.vip, tt.port, who)
			if !slices.Contains(tt.want, who) {
				o.t.Errorf("%s at %s:%d: answered by %s, want one of %v", client.Name, tt.vip, tt.port, who, tt.want)
			}
		}
	}
}

// keepsOut checks that only clients in the machine networks get machine configs. Others do not
// get a byte.
func (o *outside) keepsOut() {
	o.t.Helper()
	for _, vip := range []string{apiVIP, apiVIP6} {
		o.await("a machine config", func() bool {
			who, err := get(o.inside, "https", vip, 22623, "/config/worker")
			return err == nil && slices.Contains(allAPIs, who)
		})
		within := 0
		o.await("a byte from port 22623", func() bool { within = o.greeted(o.inside, vip); return within > 0 })
		beyond := o.greeted(o.beyond, vip)
		o.t.Logf("begins TLS at %s, port 22623: a client in the machine networks reads %d bytes, one beyond %d", vip, within, beyond)
		testkit.Equal(testkit.In(o.t, vip), 0, beyond)
		if who, err := get(o.beyond, "https", vip, 22623, "/config/worker"); err == nil {
			o.t.Errorf("a client beyond the machine networks got a machine config of %s", who)
		}
	}
}

// greeted returns the number of bytes that a client gets from port 22623 when it starts TLS.
func (o *outside) greeted(client *netns.Node, vip string) int {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), time.Minute)
	defer cancel()
	raw, err := client.DialContext(ctx, "tcp", net.JoinHostPort(vip, "22623"))
	if err != nil {
		return 0 // not even a connection
	}
	defer raw.Close()
	conn := &counted{Conn: raw}
	if err := tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx); err != nil && ctx.Err() != nil {
		o.t.Errorf("%s at %s:22623: neither an answer nor an end", client.Name, vip)
	}
	return conn.read
}

// counted counts the bytes read from a connection.
type counted struct {
	net.Conn
	read int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read += n
	return n, err
}

// TestExternalFailover stops hosts of the pair under the load of a client, and prints the
// client's results.
func TestExternalFailover(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	o := newCluster(t)
	o.balance("--bootstrap-gone")
	other := map[string]string{"lb-0": "lb-1", "lb-1": "lb-0"}
	first := o.serving(allAPIs...)
	second := other[first]

	o.during("HAProxy dies on "+first, apiVIP, time.Second, func() {
		o.hosts[first].proxy.Kill()
		o.awaitVIPs(second)
	})
	machine := testkit.StartStopwatch()
	back := o.during("it is back", apiVIP, time.Minute, func() {
		o.hosts[first].proxy = o.hosts[first].run("haproxy")
		o.awaitReady(first)
	})
	stayed := o.together(second)
	pause := max(back.Pause(), machine.End()) // the machine may be late after the last request, too
	switch {
	case back.Lost() == 0 && stayed:
	case pause > tooSlow:
		t.Logf("the machine was late by %v: the holder of the VIPs is undecidable", pause)
		second = o.serving(allAPIs...)
		first = other[second]
	default:
		t.Errorf("the API VIP is at %v, want it to stay at %s; %d requests lost", o.holders(apiVIP), second, back.Lost())
	}
	o.during(second+" loses its power", apiVIP, time.Second, func() {
		testkit.Must(t, o.hosts[second].SetLink(false))
		testkit.Must(t, o.hosts[second].Kill())
		delete(o.hosts, second)
		o.awaitVIPs(first)
	})
}

// TestExternalInstallation: API and machine configs are served by the bootstrap host first,
// then by the control plane, through the same haproxy.cfg, and a client that waits for the API
// in between has every request answered from the first answer on (seed 001).
func TestExternalInstallation(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	o := newOutside(t)
	bootstrap := o.node("bootstrap", 9)
	o.startControl(bootstrap)
	o.balanceAlone()
	o.answers(firstHost, bootstrap.Name)
	if r := o.during("the cluster is installed", firstHost, time.Minute, func() { o.install(bootstrap) }); r.Lost() > 0 {
		t.Errorf("requests lost: %v", r.Errors())
	}
}

// install starts the control plane, and ends the bootstrap host like an installation.
func (o *outside) install(host *netns.Node) {
	o.t.Helper()
	bootstrap := host.Name
	config := func(want ...string) {
		o.t.Helper()
		o.await(fmt.Sprintf("machine configs of %v", want), func() bool {
			who, err := get(o.inside, "https", firstHost, 22623, "/config/master")
			return err == nil && slices.Contains(want, who)
		})
	}
	config(bootstrap)
	for _, node := range o.masters {
		o.startControl(node)
	}
	o.answers(firstHost, append(slices.Clone(allAPIs), bootstrap)...)
	// The bootstrap's API server reports its shutdown, and ends when no client uses it any
	// more. A few answers of other servers do not prove that: this client is not the only one.
	down := func() int {
		return strings.Count(o.hosts["lb-0"].proxy.Output(), "Server api/"+bootstrap+" is DOWN")
	}
	before := down()
	o.apis[bootstrap].draining.Store(true)
	o.await("HAProxy to leave the bootstrap out", func() bool { return down() > before })
	// Connections that HAProxy opened before may still wait to be accepted. An API server
	// continues to serve for its --shutdown-delay-duration; here it serves until no client is
	// connected.
	o.await("the last connection to the bootstrap to end", func() bool { return o.connections(host, 6443) == 0 })
	o.apis[bootstrap].end(o.t)
	o.configs[bootstrap].kill()
	o.answers(firstHost, allAPIs...)
	config(allAPIs...)
}

// connections returns the number of open connections at a port of a node, including those that
// no program has accepted yet.
func (o *outside) connections(node *netns.Node, port int) int {
	o.t.Helper()
	out, err := node.Command(o.t.Context(), "ss", "-Htn", "state", "connected", "exclude", "time-wait", "sport", "=", fmt.Sprint(":", port)).Output()
	testkit.Must(o.t, err)
	return bytes.Count(out, []byte("\n"))
}

// TestExternalReload: HAProxy loads another configuration without losing a connection, by
// `systemctl reload` and the unit's ExecReload.
func TestExternalReload(t *testing.T) {
	t.Parallel()
	o := newCluster(t)
	host := o.balanceAlone("--bootstrap-gone")
	o.answers(firstHost, allAPIs...)
	const file = "/etc/haproxy/haproxy.cfg"
	with := testkit.ReadFile(t, host.Path(file))
	without := regexp.MustCompile(`(?m)^    server master-1 .*\n`).ReplaceAll(with, nil)
	loaded := func() int { return strings.Count(host.proxy.Output(), "Loading success.") }
	r := o.during("HAProxy reads its configuration six times", firstHost, time.Minute, func() {
		for i := range 6 {
			before := loaded()
			host.Write(file, [][]byte{without, with}[i%2])
			// After a reload the master executes itself once more: a signal that arrives
			// meanwhile is lost, and a caller that sees no worker, or one with the old file,
			// sends another one. On a slow machine that is one too many, whose worker may have
			// read the old file and appear after this round began.
			var sent time.Time
			now := [][]string{{"master-0", "master-2"}, allAPIs}[i%2]
			o.await(fmt.Sprintf("another worker, and answers from %v alone", now), func() bool {
				if time.Since(sent) > 5*time.Second || loaded() == before && time.Since(sent) > time.Second {
					host.proxy.Signal(syscall.SIGUSR2)
					sent = time.Now()
				}
				return loaded() > before && o.answered(firstHost, now...)
			})
		}
	})
	if r.Lost() > 0 {
		t.Errorf("requests lost: %v", r.Errors())
	}
}

// TestExternalDropsRights: the plain haproxy.cfg, which Ignition writes with another user,
// drops root's rights after binding the ports.
func TestExternalDropsRights(t *testing.T) {
	h := daemon.NewHost(t, daemon.AddNode(t, daemon.NewNetwork(t), "lb", "192.0.2.251/24"))
	h.Write("/etc/haproxy/haproxy.cfg", testkit.ReadFile(t, "../../golden/external/one-host/expected/haproxy/every-host/etc/haproxy/haproxy.cfg"))
	p := h.Start(nil, "haproxy", "-W", "-db", "-f", "/etc/haproxy/haproxy.cfg")
	want, err := user.Lookup("haproxy")
	testkit.Must(t, err)
	// The worker is still root's when the master reports that it loaded.
	testkit.Await(t, "a worker that runs as user haproxy", func() bool {
		if p.Ended() {
			t.Fatalf("HAProxy does not start:\n%s", p.Output())
		}
		worker, err := host.Child(p.PID())
		if err != nil {
			return false
		}
		info, err := os.Stat(fmt.Sprintf("/proc/%d", worker))
		return err == nil && fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid) == want.Uid
	})
}
