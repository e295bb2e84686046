package process

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

// echo starts an echo server and returns its address.
func echo(t *testing.T) (*Listener, string) {
	t.Helper()
	l, err := ListenAt(nil, netip.MustParseAddrPort("127.0.0.1:0"))
	testkit.Must(t, err)
	t.Cleanup(l.Kill)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	return l, l.Addr().String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, testkit.Patience)
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a line and returns the answer that arrives in time.
func ask(t *testing.T, conn net.Conn, within time.Duration) error {
	t.Helper()
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	conn.SetReadDeadline(time.Now().Add(within))
	_, err := io.ReadFull(conn, make([]byte, 1))
	return err
}

func TestFreezeAndKill(t *testing.T) {
	l, addr := echo(t)
	old := dial(t, addr)
	testkit.Must(t, ask(t, old, testkit.Patience))
	l.Freeze()
	if !l.Frozen() {
		t.Error("it is not frozen")
	}
	fresh := dial(t, addr)
	for name, conn := range map[string]net.Conn{"old": old, "fresh": fresh} {
		var timeout net.Error
		if err := ask(t, conn, 50*time.Millisecond); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the %s connection, frozen: %v", name, err)
		}
	}
	l.Thaw()
	for name, conn := range map[string]net.Conn{"old": old, "fresh": fresh} {
		testkit.Check(testkit.In(t, name), ask(t, conn, testkit.Patience))
	}
	l.Freeze()
	l.Kill() // even if it is frozen
	for name, conn := range map[string]net.Conn{"old": old, "fresh": fresh} {
		conn.SetReadDeadline(time.Now().Add(testkit.Patience))
		_, err := io.Copy(io.Discard, conn)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("the %s connection stays after Kill", name)
		}
	}
	if _, err := l.Accept(); err == nil {
		t.Error("it takes connections after Kill")
	}
	l.Kill() // again
}
