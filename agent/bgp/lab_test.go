package bgp_test

import (
	"crypto/tls"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// VIPs of the lab, in no subnet.
var (
	vip4 = netip.MustParseAddr("198.51.100.5")
	vip6 = netip.MustParseAddr("2001:db8:100::5")
)

// racks is a lab: two racks with subnets and routers of their own (FRR and BIRD, which
// announce to a third router), three nodes, and a client behind all of them.
//
//	client - core (FRR) - r1 (FRR)  - n1, n2
//	                    - r2 (BIRD) - n3
//
// Each node also has a link of its own to its router, up0, which is named after the node there.
type racks struct {
	t              *testing.T
	client, r1, r2 *netns.Node
	nodes          map[string]*rackNode
	birdctl        string    // BIRD's control socket
	birdRun        *exec.Cmd // BIRD itself
}

// rackNode is a node with services behind the VIPs, and the agent that announces these.
type rackNode struct {
	*netns.Node
	root  string
	role  string
	agent *exec.Cmd
	api   *httptest.Server // the stand-in for the API server
	log   testkit.Log
	// haproxy holds the listeners of the stand-in for HAProxy.
	haproxy []net.Listener
	state   *state.Dir
}

func newRacks(t *testing.T, conf, frr, bird string) *racks {
	t.Helper()
	for _, program := range []string{"/usr/lib/frr/bgpd", "/usr/sbin/bird"} {
		if _, err := os.Stat(program); err != nil {
			testkit.CannotRun(t, "it takes Debian's packages frr and bird2")
		}
	}
	network := daemon.NewNetwork(t)
	l := &racks{t: t, nodes: map[string]*rackNode{}}
	l.client = daemon.AddNode(t, network, "client", "203.0.113.10/24", "2001:db8:c::10/64")
	core := daemon.AddNode(t, network, "core", "203.0.113.1/24", "2001:db8:c::1/64", "10.255.1.0/31", "10.255.2.0/31", "2001:db8:f1::/127", "2001:db8:f2::/127")
	r1 := daemon.AddNode(t, network, "r1", "192.0.2.1/26", "2001:db8:1::1/64", "10.255.1.1/31", "2001:db8:f1::1/127")
	r2 := daemon.AddNode(t, network, "r2", "192.0.2.65/26", "2001:db8:2::1/64", "10.255.2.1/31", "2001:db8:f2::1/127")
	l.route(l.client, "203.0.113.1", "2001:db8:c::1")
	// All are on one link: a redirect would send the client past the core, to one rack alone.
	for _, r := range []*netns.Node{core, r1, r2} {
		l.sysctl(r, "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.send_redirects=0", "net.ipv4.conf."+r.Link+".send_redirects=0")
	}
	l.sysctl(l.client, "net.ipv6.conf."+l.client.Link+".accept_redirects=0")
	// The routers must not choose by the same hash, or half of the nodes get nothing.
	l.sysctl(core, "net.ipv4.fib_multipath_hash_policy=1", "net.ipv6.fib_multipath_hash_policy=1")
	l.sysctl(r1, "net.ipv4.fib_multipath_hash_policy=3", "net.ipv4.fib_multipath_hash_fields=16",
		"net.ipv6.fib_multipath_hash_policy=3", "net.ipv6.fib_multipath_hash_fields=16")
	l.frr(core, frrCore)
	l.frr(r1, frr)
	l.r1, l.r2 = r1, r2
	l.bird(bird)
	for name, at := range map[string][3]string{
		"n1": {"192.0.2.11/26", "2001:db8:1::11/64", "1"}, "n2": {"192.0.2.12/26", "2001:db8:1::12/64", "1"}, "n3": {"192.0.2.73/26", "2001:db8:2::73/64", "2"},
	} {
		n := &rackNode{Node: daemon.AddNode(t, network, name, at[0], at[1]), root: t.TempDir(), role: v1alpha1.RoleMaster}
		// FRR advertises its prefix where it has extended next hops: BFD would leave by another address than BGP.
		l.sysctl(n.Node, "net.ipv6.conf."+n.Link+".accept_ra=0")
		l.route(n.Node, map[string]string{"1": "192.0.2.1", "2": "192.0.2.65"}[at[2]], "2001:db8:"+at[2]+"::1")
		l.nodes[name] = n
		l.connect(n, map[string]*netns.Node{"1": r1, "2": r2}[at[2]])
		l.serve(n)
		l.startAgent(n, conf)
	}
	return l
}

func (l *racks) run(n *netns.Node, command ...string) string {
	l.t.Helper()
	return string(testkit.Run(l.t, n.Command(l.t.Context(), command[0], command[1:]...)))
}

// connect adds a link between a node and its router, with link-local addresses alone.
func (l *racks) connect(n *rackNode, router *netns.Node) {
	l.t.Helper()
	l.run(n.Node, "ip", "link", "add", "up0", "type", "veth", "peer", "name", n.Name, "netns", router.Namespace())
	l.run(n.Node, "ip", "link", "set", "up0", "up")
	l.run(router, "ip", "link", "set", n.Name, "up")
}

func (l *racks) sysctl(n *netns.Node, settings ...string) {
	l.t.Helper()
	l.run(n, append([]string{"sysctl", "-qw"}, settings...)...)
}

func (l *racks) route(n *netns.Node, via4, via6 string) {
	l.t.Helper()
	l.run(n, "ip", "route", "add", "default", "via", via4)
	l.run(n, "ip", "-6", "route", "add", "default", "via", via6)
}

// frr runs FRR's daemons in a router until the test ends.
func (l *racks) frr(n *netns.Node, conf string) {
	l.t.Helper()
	dir := l.shared(n.Name)
	path := filepath.Join(dir, "frr.conf")
	testkit.Must(l.t, os.WriteFile(path, []byte(conf), 0o644))
	for _, name := range []string{"zebra", "bfdd", "bgpd"} {
		args := []string{"-r", "1", "/usr/lib/frr/" + name, "-f", path, "-i", filepath.Join(dir, name+".pid"), "-z", filepath.Join(dir, "zserv"),
			"--vty_socket", dir, "-P", "0", "--log", "file:" + filepath.Join(dir, name+".log")}
		if name == "bfdd" {
			args = append(args, "--bfdctl", filepath.Join(dir, "bfdd.sock"))
		}
		l.start(n, nil, "chrt", args...) // routers have nothing else to do
		testkit.Await(l.t, name+" of "+n.Name, func() bool {
			_, err := os.Stat(filepath.Join(dir, name+".vty"))
			return err == nil
		})
	}
}

// shared returns a directory that FRR's user can write to.
func (l *racks) shared(name string) string {
	l.t.Helper()
	dir, err := os.MkdirTemp("/tmp", "vg-"+name)
	testkit.Must(l.t, err)
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	testkit.Must(l.t, os.Chmod(dir, 0o777))
	return dir
}

// bird runs BIRD in the second rack's router.
func (l *racks) bird(conf string) {
	l.t.Helper()
	dir := l.shared(l.r2.Name)
	path := filepath.Join(dir, "bird.conf")
	testkit.Must(l.t, os.WriteFile(path, []byte(conf), 0o644))
	l.birdctl = filepath.Join(dir, "bird.ctl")
	l.birdRun = l.start(l.r2, nil, "chrt", "-r", "1", "bird", "-f", "-c", path, "-s", l.birdctl)
}

// start starts a program in a namespace, which is killed when the test ends.
func (l *racks) start(n *netns.Node, log io.Writer, name string, args ...string) *exec.Cmd {
	l.t.Helper()
	cmd := n.Command(l.t.Context(), name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	testkit.Must(l.t, cmd.Start())
	l.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

// serve runs what the node's checks ask, and what clients of the VIPs reach: the name of
// the node.
func (l *racks) serve(n *rackNode) {
	l.t.Helper()
	l.balance(n)
	for _, port := range []int{6443, 22623} {
		s := httptest.NewUnstartedServer(n)
		s.Listener.Close()
		s.Listener = l.listen(n, port)
		s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		s.TLS = &tls.Config{NextProtos: []string{"http/1.1"}}
		s.StartTLS()
		if port == 6443 {
			n.api = s
		}
	}
	run := filepath.Join(n.root, v1alpha1.RunDir)
	testkit.Must(l.t, os.MkdirAll(run, 0o755))
	var err error
	n.state, err = state.Open(run)
	testkit.Must(l.t, err)
	l.t.Cleanup(func() { n.state.Close() })
	testkit.Must(l.t, n.state.Publish(state.Firewall{InPlace: true, VIPs: []netip.Addr{vip4, vip6}}))
}

// ServeHTTP answers with the name of the node.
func (n *rackNode) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Connection", "close")
	io.WriteString(w, n.Name)
}

// balance runs the stand-in for HAProxy.
func (l *racks) balance(n *rackNode) {
	l.t.Helper()
	n.haproxy = nil
	for _, port := range []int{9444, 9445} {
		n.haproxy = append(n.haproxy, l.listen(n, port))
		go http.Serve(n.haproxy[len(n.haproxy)-1], n)
	}
}

func (l *racks) listen(n *rackNode, port int) (out net.Listener) {
	l.t.Helper()
	testkit.Must(l.t, n.Do(func() (err error) {
		out, err = net.Listen("tcp", fmt.Sprintf(":%d", port))
		return err
	}))
	l.t.Cleanup(func() { out.Close() })
	return out
}

func (l *racks) startAgent(n *rackNode, conf string) {
	l.t.Helper()
	program := testkit.Speaker(l.t)
	for path, text := range map[string]string{v1alpha1.ClusterConfigPath: conf, "/nodes.yaml": nodeList, v1alpha1.BGPSecrets + "/word": "a-long-word\n"} {
		path = filepath.Join(n.root, path)
		testkit.Must(l.t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(l.t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, dir := range []string{v1alpha1.JobDir("bgp"), filepath.Dir(v1alpha1.BGPKept)} {
		testkit.Must(l.t, os.MkdirAll(filepath.Join(n.root, dir), 0o755))
	}
	// As in its pod, with sessions by interface.
	args := []string{"NODE_NAME=" + n.Name, "setpriv", "--bounding-set=-all,+net_admin,+net_raw,+sys_nice", program, "bgp", "--role", n.role, "--root", n.root, "--nodes", filepath.Join(n.root, "nodes.yaml")}
	n.agent = l.start(n.Node, &n.log, "env", args...)
	l.t.Cleanup(func() {
		if l.t.Failed() {
			l.t.Logf("%s:\n%s", n.Name, n.log.String())
		}
	})
}

// stop ends the agent as a shutdown of its pod does.
func (n *rackNode) stop(t *testing.T) {
	t.Helper()
	testkit.Must(t, n.agent.Process.Signal(syscall.SIGTERM))
	n.agent.Wait()
}

const nodeList = `
- {name: n1, role: master, addresses: [192.0.2.11, "2001:db8:1::11"]}
- {name: n2, role: master, addresses: [192.0.2.12, "2001:db8:1::12"]}
- {name: n3, role: master, addresses: [192.0.2.73, "2001:db8:2::73"]}
`

// inTable returns the cluster with routes for another speaker.
func inTable() string {
	before, rest, _ := strings.Cut(cluster, "  announce: bgp\n")
	_, after, _ := strings.Cut(rest, "  # end\n")
	return before + "  announce: table\n" + after
}

//go:embed testdata/cluster.yaml
var cluster string
