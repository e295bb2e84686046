package agents

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/cmd/command"
	"github.com/vipgen/vipgen/internal/testkit"
	"github.com/vipgen/vipgen/templates/pod"
)

// Hard case 6: the redirect exists while the haproxy job reports that HAProxy serves, is
// restored after a flush, and is removed when that job or this one ends.
func TestHardCase06RedirectFollowsHAProxy(t *testing.T) {
	t.Parallel()
	s := newContainer(newNode(t, "192.0.2.10/24"), pod.HAProxy, "firewall")
	s.start()
	rules := func() string {
		out, _ := s.Command(context.Background(), "nft", "list", "ruleset").CombinedOutput()
		return string(out)
	}
	inPlace := func(want bool) {
		t.Helper()
		s.await("the redirect", func() bool {
			p, alive := published[state.Firewall](s)
			return alive && p.InPlace == want && strings.Contains(rules(), "192.0.2.5") == want
		})
	}
	dir, err := state.Open(s.Path(v1alpha1.RunDir))
	testkit.Must(t, err)
	defer dir.Close()
	publish := func(serving bool) {
		t.Helper()
		testkit.Must(t, dir.Publish(state.HAProxy{Serving: serving}))
	}
	publish(true)
	inPlace(true)
	if errOut, code := s.probe(); code != command.OK {
		t.Errorf("liveness probe: %d: %s", code, errOut)
	}
	s.signalInit(syscall.SIGSTOP)
	s.await("a liveness probe of a job that stands still", func() bool {
		errOut, code := s.probe()
		return code == command.Finding && strings.Contains(errOut, "the firewall job does not answer")
	})
	s.signalInit(syscall.SIGCONT)
	s.await("the liveness probe", func() bool { _, code := s.probe(); return code == command.OK })
	if out, err := s.Command(context.Background(), "nft", "flush", "ruleset").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	inPlace(true)
	publish(false)
	inPlace(false)
	publish(true)
	inPlace(true)
	if err := dir.Close(); err != nil { // the haproxy job ends
		t.Fatal(err)
	}
	inPlace(false)
	testkit.Must(t, dir.Publish(state.HAProxy{Restarting: true}))
	s.await("word that HAProxy crashed", func() bool {
		p, alive := published[state.Firewall](s)
		return alive && p.Restarting && !p.InPlace
	})
	publish(true)
	inPlace(true)
	if p, _ := published[state.Firewall](s); p.Restarting {
		t.Errorf("%+v", p)
	}
	testkit.Equal(t, command.OK, s.stop())
	testkit.Lacks(t, rules(), "vipgen")
}
