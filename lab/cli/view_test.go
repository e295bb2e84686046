package cli

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/lab/control"
)

// labStatus is a lab with all kinds of content.
func labStatus(now time.Time) *control.Status {
	api, ingress := netip.MustParseAddr("192.0.2.5"), netip.MustParseAddr("192.0.2.6")
	lb := state.Term{Name: "lb-path", Points: 20, On: true, Meaning: "HAProxy is ready"}
	off := state.Term{Name: "machine-config", Points: 3, Meaning: "it runs here"}
	node := func(name, role string) control.Node {
		return control.Node{Machine: control.Machine{Name: name}, Role: role, Power: true, Link: true}
	}
	master, dead, worker, lone := node("master-0", "master"), node("master-1", "master"), node("worker-0", "worker"), node("worker-1", "worker")
	master.Priorities = []control.Priority{{Group: "api", Priority: 60, Base: 40, Terms: []state.Term{lb, off}}}
	master.Backends = []state.Backend{{Name: "master-0", Up: true}, {Name: "master-1"}}
	master.Restarts = 2
	dead.Power, dead.Stopped = false, []string{"haproxy"}
	worker.Priorities = []control.Priority{{Group: "ingress", Priority: 20, Base: 20, Fault: true, Terms: []state.Term{{Meaning: "no router"}}}}
	worker.Stopped = []string{"coredns", "router"}
	worker.LeftOut = []string{"the others\ndo not know it"}
	lone.Link = false
	return &control.Status{
		Name: "demo", Domain: "demo.example.com", Dir: "/labs/demo", Since: now.Add(-2*time.Hour - 5*time.Minute),
		CutOff: []string{"worker-0"}, Nodes: []control.Node{master, dead, worker, lone},
		VIPs: []control.VIP{
			{Address: api, Group: "api", Holders: []string{"master-0"}, Since: now.Add(-61 * time.Second),
				Failover: &control.Failover{From: "master-1", To: "master-0", At: now.Add(-61 * time.Second), WithoutHolderMS: 350}},
			{Address: ingress, Group: "ingress", Since: now},
		},
	}
}

func TestLabView(t *testing.T) {
	now := time.Now()
	s := labStatus(now)
	v := labView{now: now}
	testkit.Equal(t, string(testkit.ReadFile(t, "testdata/view.txt")), strings.Join(append(v.lines(s), v.legend(s)...), "\n")+"\n")
}

// With routers there are several nodes for a VIP, no priorities, and more machines.
func TestLabViewRouted(t *testing.T) {
	now := time.Now()
	node := control.Node{Machine: control.Machine{Name: "master-0"}, Role: "master", Power: true, Link: true}
	s := &control.Status{
		Name: "demo", Domain: "demo.example.com", Dir: "/labs/demo", Since: now, Nodes: []control.Node{node},
		VIPs: []control.VIP{{Address: netip.MustParseAddr("198.51.100.5"), Group: "api", Routed: true, Holders: []string{"master-0", "master-2"}, Since: now}},
		Others: []control.Machine{{Name: "client", Addresses: []netip.Addr{netip.MustParseAddr("203.0.113.10")}, Namespace: "vg1-1-n-client"},
			{Name: "rack-a", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}, Namespace: "vg1-1-n-rack-a", Shell: []string{"vtysh", "--vty_socket", "/run/x"}}},
	}
	v := labView{now: now}
	testkit.Equal(t, string(testkit.ReadFile(t, "testdata/view-routed.txt")), strings.Join(append(v.lines(s), v.legend(s)...), "\n")+"\n")
}

// Colours and a narrow terminal change no text except what is cut off.
func TestLabViewAtTerminal(t *testing.T) {
	now := time.Now()
	s := labStatus(now)
	whole, narrow := labView{now: now}.lines(s), labView{now: now, width: 30}.lines(s)
	for i, line := range narrow {
		if line != strings.TrimRight(line, "\n") || len(line) > 30 || !strings.HasPrefix(whole[i], line) {
			t.Errorf("%q of %q", line, whole[i])
		}
	}
	coloured := strings.Join(labView{now: now, Palette: true}.lines(s), "\n")
	plain := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[33m", "").Replace(coloured)
	if plain != strings.Join(whole, "\n") || plain == coloured {
		t.Errorf("coloured:\n%s", coloured)
	}
}
