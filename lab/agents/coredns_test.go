package agents

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/internal/testkit"
	template "github.com/vipgen/vipgen/templates/coredns"
	"github.com/vipgen/vipgen/templates/manifest"
)

// resolver is a node with CoreDNS under the agent.
type resolver struct{ jobService[state.CoreDNS] }

func newResolver(t *testing.T) resolver {
	t.Helper()
	return resolver{jobService[state.CoreDNS]{newService(t, manifest.CoreDNS, "192.0.2.10/24", "2001:db8:0:1::10/64")}}
}

// ask returns the records of the answer without owner and time to live, "-" for none, the code
// if it is not NOERROR, or "no answer".
func (r resolver) ask(server, name string, kind uint16) string {
	r.t.Helper()
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	client := &dns.Client{Timeout: time.Second}
	var conn *dns.Conn
	err := r.Do(func() (err error) {
		conn, err = client.Dial(net.JoinHostPort(server, "53"))
		return err
	})
	if err != nil {
		return "no answer"
	}
	defer conn.Close()
	reply, _, err := client.ExchangeWithConn(question, conn)
	switch {
	case err != nil:
		return "no answer"
	case reply.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[reply.Rcode]
	case len(reply.Answer) == 0:
		return "-"
	}
	out := lists.Map(reply.Answer, func(r dns.RR) string { return strings.TrimPrefix(r.String(), r.Header().String()) })
	return strings.Join(out, " ")
}

// asked repeats ask until there is an answer of any kind.
func (r resolver) asked(server, name string, kind uint16) (answer string) {
	r.t.Helper()
	r.await("an answer for "+name+" from "+server, func() bool {
		answer = r.ask(server, name, kind)
		return answer != "no answer"
	})
	return answer
}

func (r resolver) answers(server, name string, kind uint16, want string) {
	r.t.Helper()
	r.await(name+" to be "+want+" at "+server, func() bool { return r.ask(server, name, kind) == want })
}

func serving(s state.CoreDNS) bool { return s.Serving }

// Hard case 15: names follow the nodes without a reload of CoreDNS, and CoreDNS listens at its
// node's current address.
func TestHardCase15NamesFollowAddresses(t *testing.T) {
	r := newResolver(t)
	r.nodes("master-0 192.0.2.10", "master-1 192.0.2.11")
	r.answers("192.0.2.10", "api.dual.example.com", dns.TypeA, "192.0.2.5")
	r.answers("192.0.2.10", "master-1.dual.example.com", dns.TypeA, "192.0.2.11")
	r.alive()
	before := r.awaitState("CoreDNS to serve", serving)

	r.nodes("master-0 192.0.2.10", "master-1 192.0.2.77", "worker-0 192.0.2.20")
	r.answers("192.0.2.10", "master-1.dual.example.com", dns.TypeA, "192.0.2.77")
	r.answers("192.0.2.10", "worker-0.dual.example.com", dns.TypeA, "192.0.2.20")
	testkit.Equal(t, before.Reloads, r.awaitState("CoreDNS to serve", serving).Reloads)

	r.address("192.0.2.99/24")
	r.answers("192.0.2.99", "api.dual.example.com", dns.TypeA, "192.0.2.5")
	r.answers("192.0.2.99", "master-0.dual.example.com", dns.TypeA, "192.0.2.10 192.0.2.99")
	if s := r.awaitState("CoreDNS to serve", serving); s.PID != before.PID || s.Restarts != 0 {
		t.Errorf("CoreDNS was started again: %+v, before %+v", s, before)
	}
}

func TestCoreDNSKeepsTheLastGoodConfiguration(t *testing.T) {
	testkit.Live(t)
	t.Parallel()
	r := newResolver(t)
	first := r.awaitState("CoreDNS to serve", serving)
	r.put(v1alpha1.CorefileTemplate, template.Template+"\n.:54 {\n    nonsense\n}\n")
	// On a busy machine CoreDNS may answer late for a moment.
	s := r.awaitState("the refusal, and CoreDNS to serve", func(s state.CoreDNS) bool { return strings.Contains(s.Problem, "nonsense") && s.Serving })
	if s.Restarts != 0 || s.PID != first.PID || s.LastRefusal == nil {
		t.Errorf("%+v", s)
	}
	// CoreDNS detects only when it is to serve that another program has the port.
	var taken net.Listener
	if err := r.Do(func() (err error) {
		taken, err = net.Listen("tcp", "127.0.0.1:5454")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r.put(v1alpha1.CorefileTemplate, template.Template+"\n.:5454 {\n    bind 127.0.0.1\n    whoami\n}\n")
	r.awaitState("the failed reload", func(s state.CoreDNS) bool { return strings.Contains(s.Problem, "address already in use") })
	r.answers("127.0.0.1", "api.dual.example.com", dns.TypeA, "192.0.2.5")
	if data, err := r.Read(v1alpha1.Corefile); err != nil || strings.Contains(string(data), "5454") {
		t.Errorf("%v:\n%s", err, data)
	}
	r.put(v1alpha1.CorefileTemplate, template.Template)
	r.awaitState("no problem", func(s state.CoreDNS) bool { return s.Problem == "" && s.Serving })
}
