package adoption

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testbed/apitest"
	"github.com/vipgen/vipgen/internal/testbed/daemon"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/testbed/reference"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// preemption is how long two of the operator's nodes hold a VIP when a better one joins: until
// the first receives the other's first advertisement.
const preemption = 300 * time.Millisecond

// lateSplitBrain is the split brain that a late machine explains: a holder without CPU time for
// its advertisements receives those of its successor, once a second with classic, when it runs
// again.
const lateSplitBrain = 2 * time.Second

// operatorsCheck is how long an operator's node takes to know one that the cluster has listed:
// its monitor polls three times, 10 s apart, or 5 s on the bootstrap host, after it had polled
// just before. On nodes its list was 5 s old.
var operatorsCheck = map[string]time.Duration{v1alpha1.RoleMaster: 34 * time.Second, v1alpha1.RoleBootstrap: 14 * time.Second}

// mixed is a cluster of nodes with the operator's keepalived and of nodes with vipgen's agent.
type mixed struct {
	t     *testing.T
	net   *netns.Network
	api   *apitest.API
	nodes map[string]*node
	vips  []netip.Addr
	// config is the rendered cluster.yaml, conf its content.
	config []byte
	conf   *v1alpha1.ClusterConfig
	// at holds the addresses of listed nodes, of each family kubelet's.
	at map[string][]netip.Prefix

	mu        sync.Mutex
	operators map[string]*operatorsNode
	watch     *watch.Watch
	began     time.Time // start of the watch
	machine   *testkit.Stopwatch
}

// operatorsNode is a node with the operator's keepalived.
type operatorsNode struct {
	*node
	keepalived *daemon.Process
	peers      []string
}

// newMixed makes a cluster from a golden case whose files are not kept completely, whose nodes
// start beside the operator's keepalived.
func newMixed(t *testing.T, golden string) *mixed {
	t.Helper()
	m := &mixed{t: t, net: daemon.NewNetwork(t), api: apitest.NewAPI(t), nodes: map[string]*node{}, at: map[string][]netip.Prefix{}, operators: map[string]*operatorsNode{}}
	m.config = testkit.ReadFile(t, "../../golden/cases/"+golden+"/expected/cluster.yaml")
	conf, err := v1alpha1.LoadClusterConfig("cluster.yaml", m.config)
	testkit.Must(t, err)
	m.conf = conf
	for _, g := range conf.Spec.Groups {
		if g.Role == v1alpha1.GroupAPI {
			m.vips = append(m.vips, g.VIPs...)
		}
	}
	return m
}

// join creates a node. The first address of each family is kubelet's; the node has the others
// as well, as OVN-Kubernetes lists them.
func (m *mixed) join(name, role string, addresses ...netip.Prefix) *node {
	m.t.Helper()
	n := newNode(m.t, m.net, m.api, name, role, m.config, addresses...)
	m.nodes[name] = n
	for _, a := range addresses {
		if !slices.ContainsFunc(m.at[name], func(b netip.Prefix) bool { return b.Addr().Is4() == a.Addr().Is4() }) {
			m.at[name] = append(m.at[name], a)
		}
	}
	return n
}

// list adds a node to the cluster's list; operators' nodes make it a peer when their monitors
// have polled often enough.
func (m *mixed) list(n *node, all ...netip.Prefix) {
	m.t.Helper()
	m.api.SetNode(n.name, n.role, lists.Map(m.at[n.name], func(p netip.Prefix) string { return p.Addr().String() })...)
	cidrs := ""
	for i, a := range all {
		cidrs += fmt.Sprintf("%s%q", map[bool]string{true: ","}[i > 0], a)
	}
	m.api.Patch(apitest.NodesPath+"/"+n.name, apitest.Object{"metadata": apitest.Object{"annotations": apitest.Object{"k8s.ovn.org/host-cidrs": "[" + cidrs + "]"}}})
	for role, after := range operatorsCheck {
		timer := time.AfterFunc(after, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, o := range m.operators {
				if o.role == role && !slices.Contains(o.peers, n.name) {
					m.reload(o, append(o.peers, n.name))
				}
			}
		})
		m.t.Cleanup(func() { timer.Stop() })
	}
}

// reload sets the peers of an operator's node, as its monitor does.
func (m *mixed) reload(o *operatorsNode, peers []string) {
	o.peers = peers
	if conf, err := m.operatorsConf(o); err != nil {
		m.t.Errorf("configuration of %s: %v", o.name, err)
	} else {
		o.Write(v1alpha1.KeepalivedConf, conf)
		o.keepalived.Signal(syscall.SIGHUP)
	}
}

// operatorsConf returns the configuration of the operator's keepalived: from and to kubelet's
// addresses, whatever other addresses nodes have. Of the API's checks only that of the local
// API server succeeds, as for the agents here.
func (m *mixed) operatorsConf(o *operatorsNode) ([]byte, error) {
	n := &v1alpha1.Node{Name: o.name, Role: o.role, Interfaces: []v1alpha1.Interface{
		{Name: netns.DefaultLink, Addresses: m.at[o.name], DefaultRoute4: true, DefaultRoute6: true}}}
	for _, name := range o.peers {
		if name == o.name {
			continue
		}
		p := v1alpha1.Peer{Name: name, Role: v1alpha1.RoleMaster}
		for _, a := range m.at[name] {
			p.Addresses = append(p.Addresses, a.Addr())
		}
		n.Peers = append(n.Peers, p)
	}
	conf, err := reference.KeepalivedConf(m.conf, n)
	if len(n.Peers) == 1 && m.conf.Spec.ControlPlane.Replicas == 2 {
		// Topologies with two nodes, while one exists, have a peer without an address
		// (getSortedBackends).
		conf = bytes.ReplaceAll(conf, []byte("unicast_peer {\n"), []byte("unicast_peer {\n        0.0.0.0\n"))
	}
	for script, result := range map[string]string{"chk_ocp_lb": "false", "chk_ocp_both": "true", "chk_mcs": "false"} {
		conf = bytes.ReplaceAll(conf, []byte("/etc/keepalived/"+script+".sh"), []byte("/usr/bin/"+result))
	}
	return conf, err
}

// operate starts the operator's keepalived on a node with the others as peers.
func (m *mixed) operate(n *node, peers ...string) {
	m.t.Helper()
	o := &operatorsNode{node: n, peers: peers}
	conf, err := m.operatorsConf(o)
	testkit.Must(m.t, err)
	n.Write(v1alpha1.KeepalivedConf, conf)
	o.keepalived = n.Start(nil, "keepalived", "--dont-fork", "--vrrp", "--log-console", "--no-syslog", "-f", v1alpha1.KeepalivedConf)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.operators[n.name] = o
}

// adopt replaces the operator's keepalived of a node by vipgen's agent, and returns when it
// takes part for all API VIPs.
func (m *mixed) adopt(n *node) {
	m.t.Helper()
	m.leave(n)
	n.start()
	m.awaitPart(n)
	m.held()
}

// awaitKnown waits until all operator's nodes have made a node a peer.
func (m *mixed) awaitKnown(n *node) {
	m.t.Helper()
	testkit.Await(m.t, "the operator's nodes to know "+n.name, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, o := range m.operators {
			if !slices.Contains(o.peers, n.name) {
				return false
			}
		}
		return true
	})
}

// leave ends the operator's keepalived on a node, if it runs there.
func (m *mixed) leave(n *node) {
	m.mu.Lock()
	o := m.operators[n.name]
	delete(m.operators, n.name)
	m.mu.Unlock()
	if o != nil {
		o.keepalived.Stop()
	}
}

// held waits until each VIP has been on one node alone for a while.
func (m *mixed) held() {
	m.t.Helper()
	var last string
	since := time.Now()
	testkit.Await(m.t, "one holder of each VIP", func() bool {
		now, one := "", true
		for _, vip := range m.vips {
			holders := m.holders(vip)
			now, one = fmt.Sprint(now, holders), one && len(holders) == 1
		}
		if now != last || !one {
			last, since = now, time.Now()
		}
		return time.Since(since) >= settled
	}, func() string { return last })
}

// startWatch watches the holders of the VIPs by packets with the kernel's times: an observer
// that is late sees the same. All nodes exist already.
func (m *mixed) startWatch() {
	m.t.Helper()
	m.began = time.Now()
	cfg := watch.Config{Network: m.net, VIPs: m.vips, Since: m.began}
	for _, name := range m.all() {
		cfg.Nodes = append(cfg.Nodes, m.nodes[name].Node)
	}
	var err error
	m.watch, err = watch.Start(cfg)
	testkit.Must(m.t, err)
	m.machine = testkit.StartStopwatch()
}

// judge ends the watch, and fails the test if two nodes advertised a VIP for longer than when
// the operator's own pre-empt each other.
func (m *mixed) judge() watch.Timeline {
	m.t.Helper()
	timeline, err := m.watch.End()
	testkit.Must(m.t, err)
	late := m.machine.End()
	var longest watch.Overlap
	for _, o := range timeline.In(watch.Capture).Overlaps(0) {
		if o.Length() > longest.Length() {
			longest = o
		}
	}
	testkit.Promise(m.t, fmt.Sprintf("both %s and %s hold %v", longest.Nodes[0], longest.Nodes[1], longest.VIP), longest.Length(), preemption, lateSplitBrain, late)
	return timeline
}

// awaitPart waits until a node takes part for all API VIPs.
func (m *mixed) awaitPart(n *node) {
	m.t.Helper()
	n.awaitState("it takes part for each VIP", func(s state.Keepalived) bool {
		return running(s) && !slices.ContainsFunc(m.vips, func(vip netip.Addr) bool {
			return !slices.ContainsFunc(s.Instances, func(i state.Instance) bool { return i.VIP == vip })
		})
	})
}

// neverNone fails the test if no node held a VIP for longer than bound, from a time on.
func (m *mixed) neverNone(timeline watch.Timeline, from time.Time, bound time.Duration) {
	m.t.Helper()
	for _, vip := range m.vips {
		until, longest := from.Sub(m.began), time.Duration(0)
		for _, s := range timeline.In(watch.Addresses) {
			if s.VIP == vip {
				longest, until = max(longest, s.From-until), max(until, s.To)
			}
		}
		testkit.Promise(m.t, fmt.Sprintf("%v is on no node", vip), longest, bound, bound+lateSplitBrain, m.machine.End())
	}
}
