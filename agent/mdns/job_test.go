package mdns

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestReasonNotPublished(t *testing.T) {
	unfit := func(host string) *Job { return &Job{unfit: publishable(host)} }
	for want, j := range map[string]*Job{
		"no interface has an IPv4 address":          {chosen: errors.New("no interface has an IPv4 address")},
		"no link that is up has the node's address": {},
		"probing whether the name is free":          {name: publisherState{Link: "eth0"}},
		"no such device":                            {name: publisherState{Err: errors.New("no such device")}},
		"called localhost":                          unfit("localhost"),
		"not one label":                             unfit("a_b"),
		"":                                          {name: publisherState{Published: true}, unfit: errors.New("whatever")},
	} {
		j.Source = &facts.Source{}
		got := j.state()
		testkit.Contains(t, got.Why, want)
		testkit.Equal(testkit.In(t, want), want == "", got.Why == "")
	}
	taken := &conflictError{Name: "m0.local"}
	j := &Job{Source: &facts.Source{}, name: publisherState{Err: taken}, resolver: errors.New("no route")}
	if got := j.state(); got.Why != taken.Error() || got.Conflict.Name != "m0.local" || got.Problem != "no route" {
		t.Errorf("%+v", got)
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
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			logChange(slog.New(slog.NewTextHandler(&log, nil)), tt.before, tt.now)
			var got []string
			for line := range strings.Lines(log.String()) {
				_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // without the time stamp
				got = append(got, line)
			}
			testkit.Equal(t, strings.Join(tt.want, "\n"), strings.Join(got, "\n"))
		})
	}
}
