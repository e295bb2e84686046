package haproxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testkit"
)

// HAProxy serves as many connections at once as configured, in every generation. Where the
// limit of open files allows fewer it starts anyway.
func TestConnections(t *testing.T) { daemon.EachGeneration(t, testConnections) }

func testConnections(t *testing.T, g daemon.Generation) {
	testkit.Live(t)
	lb, _ := start(t, g, render(t, g, 2))
	lb.Await(t, "api-servers", up("UP", "UP", "UP"))
	testkit.Equal(t, MaxConn, lb.Info(t, "Maxconn"))
	held := hold(t, lb, manyConnections)
	if got := lb.Info(t, "CurrConns"); got < manyConnections {
		t.Errorf("HAProxy has %d connections, want %d", got, manyConnections)
	}
	for i, conn := range held {
		testkit.Must(testkit.In(t, i), echo(conn))
	}
}

// manyConnections exceeds the default of 2,000 connections of HAProxy's front ends. Each needs
// two files of HAProxy and two of this test, which limits how many of three generations a
// machine with a low limit of files can hold at once.
const manyConnections = 2500

// hold opens connections through HAProxy to echo servers. They use all addresses of the node,
// since the ports of one would not suffice.
func hold(t *testing.T, lb *daemon.LoadBalancer, n int) (held []net.Conn) {
	t.Helper()
	for i := range n {
		conn, err := streamTo(lb, servers[i%len(servers)])
		testkit.Must(testkit.In(t, i), err)
		t.Cleanup(func() { conn.Close() })
		held = append(held, conn)
	}
	return held
}

// stream opens a connection through HAProxy that stays open.
func stream(lb *daemon.LoadBalancer) (net.Conn, error) { return streamTo(lb, servers[0]) }

// streamTo is stream to an address of the node.
func streamTo(lb *daemon.LoadBalancer, a netip.Addr) (net.Conn, error) {
	conn, err := lb.Dial(netip.AddrPortFrom(a, uint16(v1alpha1.DefaultPorts.HAProxy)).String())
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	secure.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprint(secure, "GET /watch HTTP/1.1\r\nHost: api\r\n\r\n"); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	return secure, nil
}

// echo returns an error unless bytes come back over a stream.
func echo(conn net.Conn) error {
	conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := conn.Write([]byte("ping")); err != nil {
		return err
	}
	_, err := io.ReadFull(conn, make([]byte, 4))
	return err
}
