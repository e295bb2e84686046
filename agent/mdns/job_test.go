package mdns

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testbed/netns"
	"github.com/vipgen/vipgen/internal/testkit"
)

// runJob starts a Job, and returns where it publishes its state.
func (l *lab) runJob(node *netns.Node, host string) (*proc, *state.Dir) {
	l.t.Helper()
	path := l.t.TempDir()
	cluster, err := os.ReadFile("../../cmd/agentcli/testdata/cluster.yaml")
	if err == nil {
		err = os.WriteFile(filepath.Join(path, filepath.Base(v1alpha1.ClusterConfigPath)), cluster, 0o644)
	}
	dir, err2 := state.Open(path)
	if err != nil || err2 != nil {
		l.t.Fatal(err, err2)
	}
	return l.start(node, nil, roleEnv+"=job", hostEnv+"="+host, dirEnv+"="+path), dir
}

// Whenever SIGTERM arrives, the process announces its goodbye if it had a name, and exits
// without goroutines of the job, which its exit code reports.
func TestJobEndsAtAnyMoment(t *testing.T) {
	testkit.Live(t)
	l := newLab(t)
	node := l.add("node", "192.0.2.10/24")
	l.add("other", "192.0.2.11/24")
	for moment := time.Duration(0); moment < 2*time.Second; moment += 250 * time.Millisecond {
		job, dir := l.runJob(node, "master-0")
		<-job.begun
		time.Sleep(moment)
		job.end(syscall.SIGTERM)
		if !job.cmd.ProcessState.Success() {
			t.Errorf("SIGTERM after %v: %v", moment, job.cmd.ProcessState)
		}
		if s, err := state.Read[state.MDNS](dir); s != nil || err != nil {
			t.Errorf("SIGTERM after %v: the state is there: %v", moment, err)
		}
	}
}

// A stuck job does not answer a probe, and no other host on the link receives the probe.
func TestProbe(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	node := l.add("node", "192.0.2.10/24")
	heard := l.listen(l.add("other", "192.0.2.11/24"), "192.0.2.11")
	job, dir := l.runJob(node, "master-0")
	probe := func(limit time.Duration) (why string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		l.do(node, func() error { why, err = probe(ctx, dir); return nil })
		return why, err
	}
	until(t, "the name", func() bool { p, _ := state.Read[state.MDNS](dir); return p != nil && p.Announced })
	if why, err := probe(testkit.Patience); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	job.cmd.Process.Signal(syscall.SIGSTOP)
	until(t, "a probe that gets no answer", func() bool {
		_, err := probe(2 * time.Second)
		return err != nil && strings.Contains(err.Error(), "no answer")
	})
	job.cmd.Process.Signal(syscall.SIGCONT)
	if why, err := probe(testkit.Patience); why != "" || err != nil {
		t.Errorf("%q, %v", why, err)
	}
	job.end(syscall.SIGKILL)
	if why, err := probe(testkit.Patience); err == nil || !strings.Contains(err.Error(), "does not run") {
		t.Errorf("the job was killed: %q, %v", why, err)
	}
	all := heard()
	if len(all) == 0 {
		t.Error("the other node received no packet")
	}
	for _, in := range all {
		if in.from.Port() != port {
			t.Errorf("the other node received the probe: %v", in.msg)
		}
	}
}

// listen receives packets to the groups on a node, until heard is called.
func (l *lab) listen(node *netns.Node, address string) (heard func() []packet) {
	l.t.Helper()
	var g *group
	l.do(node, func() error {
		at, err := locate(testkit.Addrs(address))
		if err == nil {
			g, err = join(at)
		}
		return err
	})
	var all []packet
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case in := <-g.packets:
				all = append(all, in)
			case <-stop:
				return
			}
		}
	}()
	return func() []packet {
		close(stop)
		<-ended
		g.leave()
		return all
	}
}

func TestReasonNotPublished(t *testing.T) {
	tests := []struct {
		name, host string
		addresses  []string
		before     []string // arguments of ip before the job starts
		why        string
	}{
		{"no address", "master-0", nil, nil, "no interface has an IPv4 address"},
		{"a VIP alone", "master-0", []string{"192.0.2.5/32"}, nil, "no interface has an IPv4 address"},
		{"link down", "master-0", []string{"192.0.2.10/24"}, []string{"link", "set", "eth0", "down"}, "no link that is up has the node's address"},
		{"localhost", "localhost.localdomain", []string{"192.0.2.10/24"}, nil, "called localhost"},
		{"no host", "a_b", []string{"192.0.2.10/24"}, nil, "not one label"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t)
			node := l.add("node", tt.addresses...)
			if tt.before != nil {
				l.ip(node, tt.before...)
			}
			_, dir := l.runJob(node, tt.host)
			var p *state.MDNS
			until(t, "the reason", func() bool {
				p, _ = state.Read[state.MDNS](dir)
				return p != nil && strings.Contains(p.Why, tt.why)
			})
			if why, err := probe(t.Context(), dir); err != nil || why != p.Why || p.Announced {
				t.Errorf("probe: %q, %v; state %+v", why, err, p)
			}
		})
	}
}

func TestChangesAreLoggedOnce(t *testing.T) {
	at := func(name string, addresses ...string) state.Host {
		return state.Host{Name: name, Addresses: testkit.Addrs(addresses...)}
	}
	none := state.MDNS{Name: "m0.local", Why: "no address"}
	out := state.MDNS{Name: "m0.local", Announced: true, Interface: "eth0", Addresses: testkit.Addrs("192.0.2.1")}
	lost := state.MDNS{Name: "m0.local", Why: "the name is taken", Conflict: &state.Conflict{}}
	with := func(p state.MDNS, hosts ...state.Host) state.MDNS { p.Hosts = hosts; return p }
	tests := []struct {
		name        string
		before, now state.MDNS
		want        []string
	}{
		{"the same", out, out, nil},
		{"begun", state.MDNS{}, none, []string{`level=INFO msg="mDNS name changed" name=m0.local announced=false why="no address"`}},
		{"announced", none, out, []string{`level=INFO msg="mDNS name changed" name=m0.local announced=true interface=eth0 addresses=[192.0.2.1]`}},
		{"taken", out, lost, []string{`level=WARN msg="mDNS name changed" name=m0.local announced=false why="the name is taken"`}},
		{"hosts", with(out, at("a", "192.0.2.2"), at("b", "192.0.2.3")), with(out, at("a", "192.0.2.4"), at("c", "192.0.2.5")),
			[]string{`level=INFO msg="hosts on the link changed" hosts=2 found=c[192.0.2.5] lost=b moved=a[192.0.2.4]`}},
		{"many", out, with(out, at("a"), at("b"), at("c"), at("d"), at("e"), at("f"), at("g")),
			[]string{`level=INFO msg="hosts on the link changed" hosts=7 found="a[], b[], c[], d[], e[] and 2 more"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			logChange(slog.New(slog.NewTextHandler(&log, nil)), tt.before, tt.now)
			var got []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // without the time stamp
				got = append(got, line)
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
