package fabric_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/agent/fabric"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

const (
	unused4, unused6 = "192.0.2.250", "2001:db8::250"
	both             = unused4 + "," + unused6
)

// link is two nodes on a bridge.
type link struct {
	t       testing.TB
	network *netns.Network
	a, b    *netns.Node
}

func newLink(t testing.TB) *link {
	network := daemon.NewNetwork(t)
	return &link{t, network, daemon.AddNode(t, network, "a", "192.0.2.1/24", "2001:db8::1/64"), daemon.AddNode(t, network, "b", "192.0.2.2/24", "2001:db8::2/64")}
}

// hub runs a command where the bridge is.
func (l *link) hub(command string) string {
	l.t.Helper()
	return string(testkit.Run(l.t, exec.Command("ip", append([]string{"netns", "exec", l.network.Hub()}, strings.Fields(command)...)...)))
}

// drop has the bridge drop packets that match an expression of nftables.
func (l *link) drop(matches ...string) {
	l.t.Helper()
	rules := "table bridge fabric { chain forward { type filter hook forward priority 0; policy accept;\n" + strings.Join(matches, "\n") + "\n}\n}\n"
	c := exec.Command("ip", "netns", "exec", l.network.Hub(), testkit.Program(l.t, "nft"), "-f", "-")
	c.Stdin = strings.NewReader(rules)
	testkit.Run(l.t, c)
}

// listen starts the command on b, and returns when it waits for a. end sends it a signal,
// if any, and waits for its end.
func (l *link) listen(address string) (end func(os.Signal) (code int, log string)) {
	l.t.Helper()
	log := &testkit.Log{}
	c := l.b.Command(l.t.Context(), testkit.Agent(l.t), "fabric-check", "--listen", "--peer", "192.0.2.1", "--address", address)
	c.Stderr = log
	testkit.Must(l.t, c.Start())
	testkit.Await(l.t, "the command on b to wait", func() bool { return strings.Contains(log.String(), "waiting for the peer") }, log.String)
	return func(s os.Signal) (int, string) {
		if s != nil {
			_ = c.Process.Signal(s)
		}
		_ = c.Wait()
		return c.ProcessState.ExitCode(), log.String()
	}
}

// check runs both commands to their end.
func (l *link) check(address string) (code int, report fabric.Report) {
	l.t.Helper()
	end := l.listen(address)
	ctx, cancel := context.WithTimeout(l.t.Context(), testkit.Patience)
	defer cancel()
	var out, errOut bytes.Buffer
	c := l.a.Command(ctx, testkit.Agent(l.t), "fabric-check", "--peer", "192.0.2.2", "--address", address, "-o", "json")
	c.Stdout, c.Stderr = &out, &errOut
	_ = c.Run()
	err := json.Unmarshal(out.Bytes(), &report)
	var signal os.Signal
	if err != nil {
		signal = syscall.SIGTERM
	}
	if other, log := end(signal); err != nil || other != command.OK {
		l.t.Fatalf("%v, exit code of the other node %d\n%s%s%s", err, other, &out, &errOut, log)
	}
	l.clean()
	return c.ProcessState.ExitCode(), report
}

// clean fails the test if a node still has the address.
func (l *link) clean() {
	l.t.Helper()
	for _, n := range []*netns.Node{l.a, l.b} {
		at, err := n.Addresses()
		testkit.Must(l.t, err)
		testkit.Lacks(l.t, fmt.Sprint(at), unused4+"/", unused6+"/")
	}
}

// bad returns the checks that do not pass: name, result, and the number of directions. A
// busy test machine delays announcements.
func bad(r fabric.Report) map[string]int {
	out := map[string]int{}
	for _, c := range r.Checks {
		if c.Result != fabric.Pass && !strings.Contains(c.Cause, "are delayed") {
			out[fmt.Sprint(c.Name, " ", c.Result)]++
		}
	}
	return out
}

func TestGoodBridge(t *testing.T) {
	l := newLink(t)
	code, report := l.check(both)
	testkit.Equal(t, map[string]int{}, bad(report))
	testkit.Equal(t, command.OK, code)
	testkit.Equal(t, 2*(1+2+1+1+1+2)+2*(1+1+1+1+1+1+2), len(report.Checks))
	for _, c := range report.Checks {
		if strings.HasPrefix(c.Name, "move-") && c.ReachedMS <= 0 {
			t.Errorf("%+v", c)
		}
	}
}

// A network that hinders an address from moving is recognized by what it does.
func TestFabrics(t *testing.T) {
	for _, tt := range []struct {
		name    string
		address string
		drop    []string
		want    map[string]int
	}{
		{"no gratuitous ARP requests", unused4, []string{"arp operation request arp saddr ip " + unused4 + " arp daddr ip " + unused4 + " drop"},
			map[string]int{"move-arp-request fail": 2, "announcement-rate fail": 2}},
		{"no gratuitous ARP replies, no unicast VRRP", unused4, []string{"arp operation reply ether daddr ff:ff:ff:ff:ff:ff drop", "ip protocol 112 ip daddr != 224.0.0.0/4 drop"},
			map[string]int{"move-arp-reply warning": 2, "vrrp-unicast warning": 2}},
		{"no broadcast ARP for the address", unused4, []string{"arp daddr ip " + unused4 + " ether daddr ff:ff:ff:ff:ff:ff drop"},
			map[string]int{"move-arp-request fail": 2, "move-arp-reply warning": 2, "resolution fail": 2, "announcement-rate fail": 2}},
		{"ARP limited, a router between the nodes", unused4, []string{"arp operation request limit rate over 5/second burst 5 packets drop", "ip protocol 112 ip ttl set 254"},
			map[string]int{"announcement-rate warning": 2, "vrrp-unicast fail": 2, "vrrp-multicast fail": 2}},
		{"the address is bound to a port, no VRRP", both, []string{"ip saddr " + unused4 + " drop", "ip6 saddr " + unused6 + " ip6 nexthdr udp drop", "ip protocol 112 drop", "ip6 nexthdr 112 drop"},
			map[string]int{"source fail": 4, "vrrp-unicast fail": 4, "vrrp-multicast fail": 4}},
		{"packets do not follow", unused4, []string{"ip daddr " + unused4 + " drop"},
			map[string]int{"move-arp-request fail": 2, "move-arp-reply warning": 2}},
		{"no neighbour advertisements to all nodes", unused6, []string{"icmpv6 type nd-neighbor-advert ip6 daddr ff02::1 drop"},
			map[string]int{"move-neighbour-advertisement fail": 2, "announcement-rate fail": 2, "duplicate-detection fail": 2}},
		{"no solicited-node multicast for the address", unused6, []string{"icmpv6 type nd-neighbor-solicit ip6 daddr ff02::1:ff00:250 drop"},
			map[string]int{"duplicate-detection fail": 2, "resolution fail": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t)
			l.drop(tt.drop...)
			code, report := l.check(tt.address)
			testkit.Equal(t, tt.want, bad(report))
			testkit.Equal(t, report.Failed(), code == command.Finding)
		})
	}
}

// A bridge that suppresses ARP at a port, as at a tunnel of EVPN, passes no gratuitous ARP
// to it.
func TestSuppression(t *testing.T) {
	l := newLink(t)
	l.hub("bridge link set dev p2 neigh_suppress on")
	_, report := l.check(unused4)
	testkit.Equal(t, map[string]int{"move-arp-request fail": 1, "move-arp-reply warning": 1, "announcement-rate fail": 1}, bad(report))
}

// An address for which another host answers is not touched.
func TestAnswered(t *testing.T) {
	for _, tt := range []struct {
		name  string
		setUp []string // on the other host
		want  string
	}{
		{"in use", []string{"ip address add " + unused4 + "/32 dev eth0"}, "the address is in use"},
		{"proxy ARP", []string{"ip link add behind type veth peer name end", "ip link set end up", "ip link set behind up", "ip route add 192.0.2.240/28 dev behind",
			"sysctl -q net.ipv4.ip_forward=1 net.ipv4.conf.eth0.proxy_arp=1"}, "192.0.2.251, 192.0.2.252, 192.0.2.253, 192.0.2.254: proxy ARP"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLink(t)
			other := daemon.AddNode(t, l.network, "other", "192.0.2.9/24")
			for _, line := range tt.setUp {
				words := strings.Fields(line)
				testkit.Run(t, other.Command(t.Context(), words[0], words[1:]...))
			}
			code, report := l.check(unused4)
			testkit.Equal(t, command.Finding, code)
			testkit.Equal(t, map[string]int{"unused fail": 2}, bad(report))
			for _, c := range report.Checks {
				testkit.Contains(t, c.Cause, tt.want)
			}
		})
	}
}

// A node that is stopped removes the address, and so does one whose peer is killed.
func TestEnds(t *testing.T) {
	l := newLink(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		end := l.listen(unused4)
		c := l.a.Command(t.Context(), testkit.Agent(t), "fabric-check", "--peer", "192.0.2.2", "--address", unused4)
		testkit.Must(t, c.Start())
		holds := func(n *netns.Node) bool {
			at, err := n.Addresses()
			testkit.Must(t, err)
			return strings.Contains(fmt.Sprint(at), unused4+"/")
		}
		holder := l.b
		if signal == syscall.SIGTERM {
			holder = l.a
		}
		testkit.Await(t, "the address to be there", func() bool { return holds(holder) })
		// A killed holder's address goes with its lifetime.
		shown := string(testkit.Run(t, holder.Command(t.Context(), "ip", "-o", "address", "show", "to", unused4)))
		testkit.Contains(t, shown, "deprecated", "vip", "preferred_lft 0sec")
		testkit.Lacks(t, shown, "valid_lft forever")
		testkit.Must(t, c.Process.Signal(signal))
		_ = c.Wait()
		end(nil)
		if holds(l.b) || signal == syscall.SIGTERM && holds(l.a) {
			t.Errorf("%v: the address is still there", signal)
		}
	}
}

// What cannot be checked is refused before anything is sent (more in TestFind); strangers are not served.
func TestRefused(t *testing.T) {
	l := newLink(t)
	out, err := l.a.Command(t.Context(), testkit.Agent(t), "fabric-check", "--peer", "192.0.2.2", "--address", unused4).CombinedOutput()
	testkit.Fails(t, err, "exit status")
	testkit.Contains(t, string(out), "connection refused: run 'vipgen-agent fabric-check --listen' there")
	out, err = l.a.Command(t.Context(), testkit.Agent(t), "fabric-check", "--peer", "192.0.2.2", "--address", "192.0.2.250,192.0.2.251").CombinedOutput()
	testkit.Fails(t, err, "exit status")
	testkit.Contains(t, string(out), "two addresses of one family")
	stranger := daemon.AddNode(t, l.network, "stranger", "192.0.2.66/24")
	end := l.listen(unused4)
	for _, tt := range []struct {
		node          *netns.Node
		address, want string
	}{
		{stranger, unused4, "see its output, and whether its --peer is this node's address"},
		{l.a, "192.0.2.251", "the other node was not started with the address 192.0.2.251"},
	} {
		out, err := tt.node.Command(t.Context(), testkit.Agent(t), "fabric-check", "--peer", "192.0.2.2", "--address", tt.address).CombinedOutput()
		testkit.Fails(t, err, "exit status")
		testkit.Contains(t, string(out), tt.want)
	}
	end(nil)
	l.clean()
}
