package status

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

var (
	api  = netip.MustParseAddr("192.0.2.5")
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// nodeReport returns the report of a healthy control-plane node of three.
func nodeReport(name string, holds bool) state.Report {
	i := state.Instance{
		Name: "demo_API", VIP: api, Interface: "br-ex", Holds: holds, Priority: 68, Base: 40,
		Peers: []netip.Addr{netip.MustParseAddr("192.0.2.98"), netip.MustParseAddr("192.0.2.99")},
		Terms: []state.Term{{Name: "lb-path", Points: 20, On: true}, {Name: "lb-or-api", Points: 5, On: true}, {Name: "machine-config", Points: 3, On: true}},
	}
	if !holds {
		i.Holder = &state.Holder{Node: "master-0", Address: netip.MustParseAddr("192.0.2.10"), Priority: 68}
	}
	return state.Report{
		Node: name, Version: "v1.2.0", Time: noon,
		Keepalived: &state.Keepalived{
			Wanted: true, Daemon: state.Daemon{PID: 7}, Guard: state.Guard{InPlace: true}, Instances: []state.Instance{i},
			VRRP: &v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileFast, Mode: v1alpha1.ModeUnicast, Version: 3, AdvertIntervalMS: 40},
		},
		HAProxy:  &state.HAProxy{Serving: true, Backends: []state.Backend{{Name: "master-0", Address: "192.0.2.10:6443", Up: true}}},
		Firewall: &state.Firewall{InPlace: true, Serving: true, Own: true},
		CoreDNS:  &state.CoreDNS{Serving: true},
		MDNS:     &state.MDNS{Name: name + ".local", Announced: true},
	}
}

// reports returns the reports of a healthy cluster; master-0 holds the VIP.
func reports() map[string]state.Report {
	out := map[string]state.Report{}
	for _, name := range []string{"master-0", "master-1", "master-2"} {
		out[name] = nodeReport(name, name == "master-0")
	}
	return out
}

func text(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	testkit.Must(t, err)
	return data
}

// cluster reads reports as files of a directory.
func cluster(t *testing.T, all map[string]state.Report) *Cluster {
	t.Helper()
	var r Reader
	for name, report := range all {
		if !r.Add("nodes/"+name+".json", text(t, report)) {
			t.Fatalf("%s is no state", name)
		}
	}
	return r.Cluster()
}

func TestNothingIsWrong(t *testing.T) {
	c := cluster(t, reports())
	testkit.Empty(t, c.Findings)
	if len(c.VIPs) != 1 || !slices.Equal(c.VIPs[0].Holders, []string{"master-0"}) || c.VIPs[0].Members[0].Node != "master-0" || c.VIPs[0].Members[1].Holder != "master-0" {
		t.Errorf("%+v", c.VIPs)
	}
	want := map[string]string{"keepalived": "takes part", "haproxy": "serves", "firewall": "redirect in place", "coredns": "serves", "mdns": "announced"}
	for _, n := range c.Nodes {
		want := ownHAProxy
		if n.report.Firewall == nil {
			want = byVIP
		}
		testkit.Equal(testkit.In(t, n.Name), want, n.OwnRequests)
	}
	if n := c.Nodes[0]; n.Version != "v1.2.0" || n.Settings != "fast/unicast/v3/40ms" || !cmp.Equal(n.Jobs, want) {
		t.Errorf("%+v", n)
	}
}

// Each defect is found, and no other is reported.
func TestFindings(t *testing.T) {
	type cases map[string]struct {
		wrong func(map[string]state.Report)
		want  []string // code, node, VIP and words
	}
	change := func(name string, do func(*state.Report)) func(map[string]state.Report) {
		return func(all map[string]state.Report) {
			r := all[name]
			do(&r)
			all[name] = r
		}
	}
	instance := func(name string, do func(*state.Instance)) func(map[string]state.Report) {
		return change(name, func(r *state.Report) { do(&r.Keepalived.Instances[0]) })
	}
	bgp := func(do func(string, *state.BGP)) func(map[string]state.Report) {
		return func(all map[string]state.Report) {
			for name, r := range all {
				r.Keepalived, r.BGP = nil, &state.BGP{VIPs: []state.AnnouncedVIP{{Group: "API", VIP: api, Announced: true}},
					Peers: []state.BGPPeer{{Address: netip.MustParseAddr("192.0.2.1"), ASN: 64601, State: "established", BFD: "up"}}}
				do(name, r.BGP)
				all[name] = r
			}
		}
	}
	for name, tt := range (cases{
		"BGP":                 {bgp(func(string, *state.BGP) {}), nil},
		"BGP on two of three": {bgp(func(name string, b *state.BGP) { b.VIPs[0].Announced = name != "master-0" }), nil},
		"no announcer, sessions": {bgp(func(name string, b *state.BGP) {
			b.VIPs[0].Announced = false
			switch name {
			case "master-0":
				b.Peers[0].State, b.Peers[0].BFD, b.Peers[0].Problem = "active", "down", "connection refused"
			case "master-1":
				b.Peers[0].BFD, b.Peers[0].Problem = "init", "is it configured there?"
			default:
				b.Problem, b.ClusterProblem = "two speakers\nmore", "no such field"
			}
		}), []string{"no-holder  192.0.2.5 none of master-0, master-1, master-2 announces API", "session-down master-0  no BGP session with 192.0.2.1 (AS 64601): active: connection refused",
			"bfd-down master-1  BFD with 192.0.2.1 (AS 64601) is not up: a dead link is noticed after the hold time of BGP: is it configured there?", "bgp-problem master-2  two speakers",
			"config-refused master-2  bgp continues with an earlier configuration: no such field"}},
		"BGP is away": {func(all map[string]state.Report) {
			bgp(func(string, *state.BGP) {})(all)
			change("master-2", func(r *state.Report) { r.BGP = nil })(all)
		}, []string{"job-missing master-2  no state of bgp: the job does not run"}},
		"split brain": {instance("master-2", func(i *state.Instance) { i.Holds = true }),
			[]string{"split-brain  192.0.2.5 master-0, master-2 hold demo_API"}},
		"split brain of states that were read one after the other": {change("master-2", func(r *state.Report) {
			r.Keepalived.Instances[0].Holds, r.Time = true, noon.Add(40*time.Second)
		}), []string{"split-brain  192.0.2.5 master-0, master-2 hold demo_API (read 40s apart: the VIP may have moved meanwhile)"}},
		"no holder": {func(all map[string]state.Report) {
			for name := range all {
				instance(name, func(i *state.Instance) { i.Holds, i.Holder = false, nil })(all)
			}
		}, []string{"no-holder  192.0.2.5 none of master-0, master-1, master-2 holds demo_API"}},
		"a holder that does not know it": {instance("master-0", func(i *state.Instance) { i.Holds = false }),
			[]string{"no-holder  192.0.2.5 no node reports that it holds demo_API, although others receive advertisements of master-0"}},
		"the state of the holder is missing": {func(all map[string]state.Report) { delete(all, "master-0") },
			[]string{"missing-state  192.0.2.5 1 of the 3 nodes that take part for demo_API were not read", "missing-state  192.0.2.5 master-0 holds it, by the advertisements that others receive, and its state was not read"}},
		"other settings": {change("master-2", func(r *state.Report) {
			r.Keepalived.VRRP = &v1alpha1.VRRPSettings{Profile: v1alpha1.ProfileClassic, Mode: v1alpha1.ModeUnicast, Version: 2, AdvertIntervalMS: 1000}
		}), []string{"settings-differ   nodes with different VRRP settings do not receive each other's advertisements: classic/unicast/v2/1s on master-2; fast/unicast/v3/40ms on master-0, master-1"}},
		"other version": {change("master-2", func(r *state.Report) { r.Version = "v1.1.0" }),
			[]string{"versions-differ   agents of several versions: v1.1.0 on master-2; v1.2.0 on master-0, master-1"}},
		"stale": {change("master-2", func(r *state.Report) { r.Time = noon.Add(-time.Hour) }),
			[]string{"stale-state master-2  its state was read 1h0m0s before the latest"}},
		"peers": {instance("master-2", func(i *state.Instance) { i.Peers = i.Peers[:1] }),
			[]string{"peers-differ  192.0.2.5 the nodes do not know the same peers for demo_API: master-2: 1; master-0, master-1: 2"}},
		"left out": {change("master-2", func(r *state.Report) {
			r.Keepalived.LeftOut = []string{"api: this node is not registered with the cluster"}
		}), []string{"left-out master-2  api: this node is not registered with the cluster"}},
		"left out by intent": {change("master-2", func(r *state.Report) { r.Keepalived.LeftOut = []string{"this node is in no network with a VIP"} }), nil},
		"keepalived is down": {change("master-2", func(r *state.Report) { r.Keepalived.PID = 0 }), []string{"not-running master-2  keepalived should run and does not"}},
		"no guard": {change("master-2", func(r *state.Report) { r.Keepalived.Guard.InPlace = false }),
			[]string{"guard-missing master-2  VRRP packets of other hosts reach keepalived: the guard is not in place"}},
		"refused": {change("master-2", func(r *state.Report) { r.HAProxy.Problem = "HAProxy says no\nand more" }),
			[]string{"config-refused master-2  haproxy continues with an earlier configuration: HAProxy says no"}},
		"backend": {change("master-2", func(r *state.Report) { r.HAProxy.Backends[0].Up = false }),
			[]string{"backend-down master-2  API server master-0 (192.0.2.10:6443) is down for its HAProxy"}},
		"no redirect": {change("master-2", func(r *state.Report) { r.Firewall.InPlace, r.Firewall.Why = false, "nft: no" }),
			[]string{"redirect-missing master-2  HAProxy serves, and the API VIPs are not redirected to it: nft: no"}},
		"OpenShift's redirect": {change("master-2", func(r *state.Report) { r.Firewall.Operators = "table ip ocp_nat" }),
			[]string{"redirect-left master-2  OpenShift's own redirect is still there, until vipgen's is in place: table ip ocp_nat"}},
		"HAProxy does not serve": {change("master-2", func(r *state.Report) {
			r.HAProxy.Serving, r.HAProxy.Why, r.Firewall.InPlace, r.Firewall.Serving = false, "no backend", false, false
		}), []string{"not-serving master-2  HAProxy does not serve: no backend"}},
		"a job is away": {change("master-2", func(r *state.Report) { r.Firewall = nil }), []string{"job-missing master-2  no state of firewall: the job does not run"}},
		"keepalived is away": {func(all map[string]state.Report) {
			for name := range all {
				instance(name, func(i *state.Instance) { i.Peers = i.Peers[:1] })(all)
			}
			change("master-2", func(r *state.Report) { r.Keepalived = nil })(all)
		}, []string{"job-missing master-2  no state of keepalived: the job does not run"}},
		"a worker has no HAProxy": {change("master-2", func(r *state.Report) { r.Firewall, r.HAProxy = nil, nil }), nil},
		"mDNS":                    {change("master-2", func(r *state.Report) { r.MDNS.Announced, r.MDNS.Why = false, "taken" }), []string{"name-not-announced master-2  master-2.local is not announced: taken"}},
		"CoreDNS":                 {change("master-2", func(r *state.Report) { r.CoreDNS.Serving = false }), []string{"not-serving master-2  CoreDNS does not serve"}},
		"no job runs": {change("master-2", func(r *state.Report) { *r = state.Report{Node: r.Node, Version: r.Version, Time: r.Time} }),
			[]string{"missing-state  192.0.2.5 1 of the 3 nodes that take part for demo_API were not read", "missing-state master-2  the cluster has this node, and its state was not read, or no job of its agent runs"}},
	}) {
		t.Run(name, func(t *testing.T) {
			all := reports()
			tt.wrong(all)
			var got []string
			for _, f := range cluster(t, all).Findings {
				got = append(got, strings.Join([]string{string(f.Code), f.Node, f.VIP, f.Text}, " "))
				testkit.Equal(testkit.In(t, f.Code, f.Next), f.Code == leftOut, f.Next != "")
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			testkit.Equal(t, tt.want, got)
		})
	}
}

// The state of one node may be in several files, each of which counts.
func TestForms(t *testing.T) {
	all := reports()
	var r Reader
	add := func(name, data string) {
		t.Helper()
		if !r.Add(name, []byte(data)) {
			t.Errorf("%s: no state", name)
		}
	}
	// All in one file, an older one of the same node, and an agent that does not name its node.
	older, plain := all["master-0"], all["master-1"]
	older.Time, older.Version, plain.Node = noon.Add(-time.Minute), "v0.9.0", ""
	add("all.json", string(text(t, all["master-0"]))+"\n"+string(text(t, older)))
	add("again.json", string(text(t, older)))
	add("gather/master-1/status.json", string(text(t, plain)))
	add("gather/master-2.json", string(text(t, all["master-2"])))
	add("nodes.yaml", "apiVersion: v1\nkind: List\nitems:\n- kind: Node\n  metadata: {name: worker-0, annotations: {vipgen.io/vrrp: '{\"running\":\"fast/unicast/v3/40ms\"}'}}\n- kind: Node\n  metadata: {name: master-0}\n")
	if r.Add("other.json", []byte(`{"hello": 1}`)) || r.Add("pod.json", []byte(`{"kind": "Pod"}`)) {
		t.Error("something else is taken for a state")
	}
	c := r.Cluster()
	var names []string
	for _, n := range c.Nodes {
		names = append(names, n.Name+" "+n.Version+" "+n.Settings)
	}
	want := []string{"master-0 v1.2.0 fast/unicast/v3/40ms", "master-1 v1.2.0 fast/unicast/v3/40ms", "master-2 v1.2.0 fast/unicast/v3/40ms", "worker-0  fast/unicast/v3/40ms"}
	testkit.Equal(t, want, names)
	if len(c.Findings) != 1 || c.Findings[0].Code != missingState || c.Findings[0].Node != "worker-0" {
		t.Errorf("%+v", c.Findings)
	}
}

// A torn, empty or hostile file is reported, and hides no other.
func TestUnreadable(t *testing.T) {
	whole := string(text(t, nodeReport("master-0", true)))
	for name, data := range map[string]string{
		"empty.json": "", "torn.json": whole[:len(whole)/2], "list.json": `{"keepalived": []}`, "text.txt": "{keepalived  takes part",
		"large.json": `{"keepalived": ` + strings.Repeat(" ", maxState) + "{}}", "address.json": `{"keepalived": {"instances": [{"vip": "x"}]}}`,
	} {
		var r Reader
		r.Add("master-0.json", []byte(whole))
		known := r.Add(name, []byte(data))
		c := r.Cluster()
		if !known || !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Code == unreadable && strings.HasPrefix(f.Text, name+" ") }) || len(c.VIPs) != 1 {
			t.Errorf("%s: %v, %+v", name, known, c)
		}
	}
	var other Reader
	if other.Add("mg/monitoring/rules.json", []byte(`{"groups": [`+strings.Repeat(" ", maxState))) || len(other.Cluster().Findings) > 0 {
		t.Error("something else is taken for the state of a node")
	}
	var r Reader
	r.Add("nodes/master-1.json", []byte(`{"node": "../\u001b[31m", "coredns": {"serving": true}}`))
	if c := r.Cluster(); len(c.Nodes) != 1 || c.Nodes[0].Name != "master-1" {
		t.Errorf("%+v", c.Nodes)
	}
}

func TestRelevant(t *testing.T) {
	for name, want := range map[string]bool{
		"master-0.json": true, "master-0/status.json": true, "mg/cluster-scoped-resources/core/nodes/master-0.yaml": true,
		"mg/cluster-scoped-resources/core/persistentvolumes/a.yaml": false, "mg/namespaces/x/core/pods.json": false, "notes.txt": false,
	} {
		testkit.Equal(testkit.In(t, name), want, Relevant(name))
	}
}

// FuzzAdd reads any file under any name.
func FuzzAdd(f *testing.F) {
	f.Add("master-0.json", text(f, nodeReport("master-0", true)))
	f.Add("master-1.json", []byte(`{"keepalived":{"wanted":true,"instances":[{"vip":"192.0.2.5","peers":["192.0.2.6"]},{"vip":""}]}}`))
	f.Add("nodes.yaml", []byte("kind: List\nitems:\n- {kind: Node, metadata: {name: a}}"))
	f.Add("x.json", []byte("{}{\"kind\""))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var r Reader
		r.Add("nodes/master-0.json", text(t, nodeReport("master-0", true)))
		r.Add(name, data)
		r.Add(name, data)
		c := r.Cluster()
		for _, v := range c.VIPs {
			if len(v.Members) == 0 || len(v.Holders) > len(v.Members) {
				t.Errorf("%+v", v)
			}
		}
		if _, err := json.Marshal(c); err != nil {
			t.Error(err)
		}
	})
}
