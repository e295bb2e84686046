package externallb

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
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
		o.await("a byte from port 22623", func() bool { return o.greeted(o.inside, vip) > 0 })
		testkit.Equal(testkit.In(o.t, vip), 0, o.greeted(o.beyond, vip))
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
