package daemon

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testbed/process"
	"github.com/vipgen/vipgen/internal/testkit"
)

// settled is the time without a change after which an election is over. It spans several
// advertisements of the fast profile.
const settled = 500 * time.Millisecond

// Paths of keepalived's pid files on each node.
const (
	mainPID = "/run/keepalived.pid"
	vrrpPID = "/run/keepalived_vrrp.pid"
)

// Member is a node of a Cluster.
type Member struct {
	Addresses []netip.Prefix
	Link      string            // the link's name; netns.DefaultLink if empty
	Config    []byte            // its keepalived.conf
	Files     map[string][]byte // other files, by their absolute paths on the node
}

// Cluster is a set of nodes on one network that run the real keepalived, with the VIP that they
// elect a holder for.
type Cluster struct {
	Network *netns.Network

	generation Generation
	t          testing.TB
	vip        netip.Addr
	nodes      map[string]*clusterNode
}

type clusterNode struct {
	*netns.Node
	addrs   []netip.Prefix
	sandbox *sandbox
	daemon  *process.Process
	off     bool // crashed: its addresses are unreachable
}

// NewCluster starts keepalived on every node. It runs in the foreground with VRRP only and full
// logging; the log is printed if the test fails. The directories of a configuration's track
// files are created first: keepalived drops a track file whose directory is missing.
func NewCluster(t testing.TB, vip netip.Addr, members map[string]Member) *Cluster {
	t.Helper()
	return Installed.NewCluster(t, vip, members)
}

// NewCluster is NewCluster with the generation's keepalived.
func (g Generation) NewCluster(t testing.TB, vip netip.Addr, members map[string]Member) *Cluster {
	t.Helper()
	network := NewNetwork(t)
	c := &Cluster{Network: network, generation: g, t: t, vip: vip, nodes: map[string]*clusterNode{}}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c.nodes[name] = newClusterNode(t, g, network, name, members[name])
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c.Start(name)
	}
	return c
}

var trackFile = regexp.MustCompile(`(?m)^\s*file\s+"?(/[^"\s]+)`)

// mkdirsOfTrackFiles makes the directories of the track files that a configuration names.
func (s *sandbox) mkdirsOfTrackFiles(t testing.TB, conf []byte) {
	t.Helper()
	for _, match := range trackFile.FindAllSubmatch(conf, -1) {
		s.mkdir(t, filepath.Dir(string(match[1])))
	}
}

func newClusterNode(t testing.TB, g Generation, network *netns.Network, name string, m Member) *clusterNode {
	t.Helper()
	link := m.Link
	if link == "" {
		link = netns.DefaultLink
	}
	node, err := network.AddNodeLink(name, link, m.Addresses...)
	testkit.Must(t, err)
	s := newSandboxOf(t, g)
	s.write(t, keepalivedConf, m.Config)
	s.mkdirsOfTrackFiles(t, m.Config)
	for path, data := range m.Files {
		s.write(t, path, data)
	}
	return &clusterNode{Node: node, addrs: m.Addresses, sandbox: s}
}

// Start starts the keepalived of a node, also after a stop or a crash. A VIP that a crash left
// on the link still exists then.
func (c *Cluster) Start(name string) {
	c.t.Helper()
	n := c.node(name)
	if n.daemon != nil && !n.daemon.Ended() {
		c.t.Fatalf("keepalived on %s is running already", name)
	}
	if n.off {
		testkit.Must(c.t, n.reconnect())
	}
	// At nice -20, so that other load on the test machine does not delay advertisements until
	// peers take the VIP.
	n.daemon = start(c.t, "keepalived on "+name, n.sandbox.command(context.Background(), n.Node,
		"/usr/bin/nice", "-n", "-20", c.generation.program(c.t, "keepalived"),
		"--dont-fork", "--vrrp", "--log-console", "--log-detail", "--use-file", keepalivedConf,
		"--pid", mainPID, "--vrrp_pid", vrrpPID))
}

// reconnect brings the link up again, with the addresses that it lost when it went down.
func (n *clusterNode) reconnect() error {
	if err := n.SetLink(true); err != nil {
		return err
	}
	n.off = false
	have, err := n.Addresses()
	for _, addr := range n.addrs {
		if err == nil && !slices.Contains(have, addr) {
			err = n.AddAddress(n.Link, addr)
		}
	}
	return err
}

// Crash makes a node fail as at a power loss: its link goes down and its keepalived is killed,
// without giving anything up. Its pid files are removed, like /run when a machine restarts.
func (c *Cluster) Crash(name string) {
	c.t.Helper()
	n := c.node(name)
	n.off = true
	testkit.Must(c.t, n.SetLink(false))
	testkit.Must(c.t, n.Kill())
	<-n.daemon.Done()
	for _, file := range []string{mainPID, vrrpPID} {
		if err := os.Remove(n.sandbox.path(file)); err != nil && !os.IsNotExist(err) {
			c.t.Fatal(err)
		}
	}
}

// WriteFile replaces a file of a node, such as a track file, in one step.
func (c *Cluster) WriteFile(name, path string, data []byte) {
	c.t.Helper()
	c.node(name).sandbox.write(c.t, path, data)
}

// Holders returns the nodes that currently have the VIP, sorted by name, except for crashed
// ones.
func (c *Cluster) Holders() []string {
	c.t.Helper()
	return c.HoldersOf(c.vip)
}

// HoldersOf is Holders for another VIP that the configurations have.
func (c *Cluster) HoldersOf(vip netip.Addr) []string {
	c.t.Helper()
	var holders []string
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		if n.off {
			continue
		}
		addrs, err := n.Addresses()
		testkit.Must(c.t, err)
		if slices.ContainsFunc(addrs, func(p netip.Prefix) bool { return p.Addr() == vip }) {
			holders = append(holders, name)
		}
	}
	return holders
}

// Holder waits until exactly one node has held the VIP for a while, and returns its name. It
// fails the test if that does not happen.
func (c *Cluster) Holder() string {
	c.t.Helper()
	var last string
	since := time.Now()
	deadline := since.Add(testkit.Patience)
	for {
		now := strings.Join(c.Holders(), ",")
		if now != last {
			last, since = now, time.Now()
		}
		alone := last != "" && !strings.Contains(last, ",")
		if alone && time.Since(since) >= settled {
			return last
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("no single holder of %v within %v; now: [%s]", c.vip, testkit.Patience, last)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Node returns a node.
func (c *Cluster) Node(name string) *netns.Node {
	c.t.Helper()
	return c.node(name).Node
}

func (c *Cluster) node(name string) *clusterNode {
	c.t.Helper()
	n, ok := c.nodes[name]
	if !ok {
		c.t.Fatalf("the cluster has no node %q", name)
	}
	return n
}
