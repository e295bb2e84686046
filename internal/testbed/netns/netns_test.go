package netns

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
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
	node, err := n.AddNode(name, lists.Map(addrs, netip.MustParsePrefix)...)
	testkit.Must(t, err)
	return node
}

func left(t *testing.T, prefix string) []string {
	t.Helper()
	found, err := filepath.Glob(path(prefix + "-*"))
	testkit.Must(t, err)
	return found
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
		_, err := n.AddNodeLink(tt.node, tt.link)
		testkit.Fails(testkit.In(t, tt.name), err, tt.want)
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
