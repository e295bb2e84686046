package bgp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// kept is the path of requests on connections that stay open.
const kept = "/kept"

// connection is an open connection, and the node that answers on it.
type connection struct {
	net.Conn
	node string
}

// ask sends a request, and returns the name of the node.
func (c *connection) ask() (string, error) {
	c.SetDeadline(time.Now().Add(testkit.Patience))
	if _, err := io.WriteString(c, "GET "+kept+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return "", err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	name, err := io.ReadAll(r.Body)
	return string(name), errors.Join(err, r.Body.Close())
}

// connect opens connections to a VIP, and returns those that a node answers.
func (l *racks) connect(n int) (out []*connection) {
	l.t.Helper()
	for range n {
		conn, err := l.client.DialContext(l.t.Context(), "tcp", netip.AddrPortFrom(vip4, 9445).String())
		testkit.Must(l.t, err)
		l.t.Cleanup(func() { conn.Close() })
		c := &connection{Conn: conn}
		c.node, err = c.ask()
		testkit.Must(l.t, err)
		out = append(out, c)
	}
	return out
}

// broken returns the number of connections, and of those that broke, by node.
func broken(list []*connection) (all, gone map[string]int) {
	all, gone = map[string]int{}, map[string]int{}
	for _, c := range list {
		all[c.node]++
		if _, err := c.ask(); err != nil {
			gone[c.node]++
		}
	}
	return all, gone
}

// TestRehash: when a node leaves, its connections are lost and no others, because the router before
// it has one path left. A node that joins takes connections from nodes behind the same router.
func TestRehash(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster)
	l.awaitBFD()
	l.awaitAll(vip4, "n1", "n2", "n3")
	began := l.unsteady()
	before := l.connect(150)
	l.nodes["n2"].stop(t)
	l.awaitAll(vip4, "n1", "n3")
	all, gone := broken(before)
	t.Logf("n2 goes: of %v broke %v", all, gone)
	if gone["n2"] != all["n2"] || all["n2"] == 0 || gone["n1"]+gone["n3"] > 0 && l.unsteady() == began {
		t.Errorf("of %v broke %v", all, gone)
	}
	between := l.connect(150)
	l.startAgent(l.nodes["n2"], cluster)
	l.awaitAll(vip4, "n1", "n2", "n3")
	all, gone = broken(between)
	t.Logf("n2 comes: of %v broke %v", all, gone)
	if l.unsteady() == began && (gone["n3"] > 0 || gone["n1"] == 0 || gone["n1"] == all["n1"]) {
		t.Errorf("of %v broke %v", all, gone)
	}
}

// unsteady counts what moves connections of nodes that stay: checks that failed, and lost sessions. On a
// machine without CPU time for the test's servers, both happen.
func (l *racks) unsteady() (n int) {
	for _, name := range []string{"n1", "n3"} {
		text := l.nodes[name].log.String()
		n += strings.Count(text, "check fails") + strings.Count(text, "BGP session lost")
	}
	return n
}
