package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testkit"
)

func newNetwork(t *testing.T) *Network {
	t.Helper()
	n, err := New()
	testkit.Must(t, err)
	testkit.Cleanup(t, n.Close)
	return n
}

func addNode(t *testing.T, n *Network, name string, addrs ...string) *Node {
	t.Helper()
	node, err := n.AddNode(name, prefixes(addrs...)...)
	testkit.Must(t, err)
	return node
}

func prefixes(addrs ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, a := range addrs {
		out = append(out, netip.MustParsePrefix(a))
	}
	return out
}

func left(t *testing.T, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(path(prefix + "-*"))
	testkit.Must(t, err)
	return found
}

func TestNodesReachEachOtherAtOnce(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	a := addNode(t, n, "a", "192.0.2.1/24", "2001:db8::1/64")
	b := addNode(t, n, "b", "192.0.2.2/24", "2001:db8::2/64")
	for _, addr := range []string{"192.0.2.1", "2001:db8::1"} {
		t.Run(addr, func(t *testing.T) { exchange(t, a, b, addr) })
	}
}

// exchange sends a line from one node to another over TCP.
func exchange(t *testing.T, server, client *Node, addr string) {
	var listener net.Listener
	err := server.Do(func() (err error) {
		listener, err = net.Listen("tcp", net.JoinHostPort(addr, "7"))
		return err
	})
	testkit.Must(t, err)
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Write([]byte("hello"))
			conn.Close()
		}
	}()

	var conn net.Conn
	err = client.Do(func() (err error) {
		conn, err = net.DialTimeout("tcp", listener.Addr().String(), 30*time.Second)
		return err
	})
	testkit.Must(t, err)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	got := make([]byte, 5)
	if _, err := conn.Read(got); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestAddresses(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	node, err := n.AddNodeLink("node-1.example", "ens192", prefixes("192.0.2.1/24", "2001:db8::1/64")...)
	testkit.Must(t, err)
	steps := []struct {
		name string
		do   func() error
		want []string
	}{
		{"as made", func() error { return nil }, []string{"192.0.2.1/24", "2001:db8::1/64"}},
		{"one more", func() error { return node.AddAddress("ens192", prefixes("192.0.2.9/32")[0]) },
			[]string{"192.0.2.1/24", "192.0.2.9/32", "2001:db8::1/64"}},
		{"other link", func() error { return node.AddLink("ens224", prefixes("198.51.100.1/24")...) },
			[]string{"192.0.2.1/24", "192.0.2.9/32", "2001:db8::1/64"}},
		{"link down", func() error { return node.SetLink(false) }, []string{"192.0.2.1/24", "192.0.2.9/32"}},
		{"link up", func() error { return node.SetLink(true) }, []string{"192.0.2.1/24", "192.0.2.9/32"}},
	}
	for _, step := range steps {
		testkit.Must(testkit.In(t, step.name), step.do())
		got, err := node.Addresses()
		testkit.Must(testkit.In(t, step.name), err)
		testkit.Equal(testkit.In(t, step.name), got, prefixes(step.want...))
	}
}

func TestCommandRunsInTheNamespace(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	node := addNode(t, n, "a")
	// Standard output alone: ip reports leftover names of namespaces that it cannot open.
	out, err := node.Command(context.Background(), "ip", "-o", "link", "show").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if lines := strings.Count(string(out), "\n"); lines != 2 || !strings.Contains(string(out), "eth0@") {
		t.Errorf("links %s, want lo and eth0 alone", out)
	}
}

func TestBadNames(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	addNode(t, n, "twice")
	tests := []struct{ name, node, link, want string }{
		{"empty node", "", "eth0", "a name is"},
		{"path", "../../x", "eth0", "a name is"},
		{"option", "-all", "eth0", "a name is"},
		{"same node", "twice", "eth0", "File exists"},
		{"empty link", "b", "", "link name"},
		{"long link", "c", "abcdefghijklmnop", "link name"},
		{"link with space", "d", "eth 0", "link name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := n.AddNodeLink(tt.node, tt.link)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestCloseRemovesEverything(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	node := addNode(t, n, "a", "192.0.2.1/24")
	sleeper := node.Command(context.Background(), "sleep", "600")
	testkit.Must(t, sleeper.Start())
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	// Until nsenter has entered, the process is not in the namespace.
	inside := path(node.Namespace())
	testkit.Await(t, "the command to be inside", func() bool {
		want, err1 := os.Stat(inside)
		got, err2 := os.Stat("/proc/" + strconv.Itoa(sleeper.Process.Pid) + "/ns/net")
		return err1 == nil && err2 == nil && os.SameFile(want, got)
	})
	if _, err := n.AddNode("a"); err == nil {
		t.Fatal("the same node twice was not refused")
	}

	testkit.Check(t, n.Close())
	testkit.Empty(t, left(t, n.prefix))
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		sleeper.Process.Kill()
		t.Error("a process of the namespace outlived it")
	}
	testkit.Check(t, n.Close())
}

func TestForeignNamespaceIsLeftAlone(t *testing.T) {
	testkit.Live(t)
	foreign := fmt.Sprintf("vg%d-%d-hub", os.Getpid(), networks.Load()+1) // the name that New tries first
	testkit.Must(t, ip("netns", "add", foreign))
	t.Cleanup(func() {
		testkit.Check(t, ip("netns", "delete", foreign))
	})
	n, err := New()
	testkit.Must(t, err)
	if n.hub == foreign {
		t.Errorf("took the namespace %s of another process", n.hub)
	}
	testkit.Check(t, n.Close())
}

func TestNetworksAreIsolated(t *testing.T) {
	testkit.Live(t)
	a := addNode(t, newNetwork(t), "a", "192.0.2.1/24")
	b := addNode(t, newNetwork(t), "a", "192.0.2.1/24")
	if a.Namespace() == b.Namespace() {
		t.Errorf("both networks have the namespace %s", a.Namespace())
	}
}

func TestPartition(t *testing.T) {
	testkit.Live(t)
	n := newNetwork(t)
	a, b, c := addNode(t, n, "a", "192.0.2.1/24"), addNode(t, n, "b", "192.0.2.2/24"), addNode(t, n, "c", "192.0.2.3/24")
	// A running node refuses connections at a closed port.
	answers := func(from *Node, to string) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := from.DialContext(ctx, "tcp", to+":7")
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	reaches := func(from *Node, to string) {
		t.Helper()
		testkit.Await(t, from.Name+" to reach "+to, func() bool { return answers(from, to) })
	}
	reaches(a, "192.0.2.2")
	for range 2 { // calling it again changes nothing
		testkit.Must(t, n.Partition("a", "c"))
	}
	reaches(a, "192.0.2.3")
	if answers(b, "192.0.2.1") || answers(c, "192.0.2.2") {
		t.Error("nodes reach each other over the cut")
	}
	if err := n.Partition("d"); err == nil || !strings.Contains(err.Error(), `no node "d"`) {
		t.Errorf("a node that is not there: %v", err)
	}
	testkit.Must(t, n.Join())
	reaches(b, "192.0.2.1")
}

func TestDoReturnsTheError(t *testing.T) {
	testkit.Live(t)
	want := errors.New("told")
	if err := addNode(t, newNetwork(t), "a").Do(func() error { return want }); err != want {
		t.Errorf("error %v, want %v", err, want)
	}
}

// Remove deletes the remains of a network whose process is gone, and nothing else.
func TestRemove(t *testing.T) {
	testkit.Live(t)
	var made []string
	n, err := NewRecorded(func(namespace string) error {
		made = append(made, namespace)
		return nil
	})
	testkit.Must(t, err)
	t.Cleanup(func() { remove(n.made) })
	addNode(t, n, "a", "192.0.2.1/24")
	if err := Remove(os.Getpid(), append(made, "vg1-1-hub")...); err == nil || !strings.Contains(err.Error(), "is not a namespace") {
		t.Errorf("a foreign name: %v", err)
	}
	if found := left(t, n.prefix); len(found) != 2 || len(made) != 2 {
		t.Fatalf("made %v, there are %v", made, found)
	}
	testkit.Check(t, Remove(os.Getpid(), append(made, n.prefix+"-n-gone")...))
	testkit.Empty(t, left(t, n.prefix))
	n.made = nil
}

// A namespace that cannot be recorded is not created.
func TestUnrecorded(t *testing.T) {
	testkit.Live(t)
	want := errors.New("no room")
	if _, err := NewRecorded(func(string) error { return want }); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
}
