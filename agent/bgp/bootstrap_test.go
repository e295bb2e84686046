package bgp_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// TestBootstrap: the bootstrap host announces the API VIP first, and alone has it while control-plane
// nodes join. Once its API server has gone, these have it; its HAProxy serves until then. A client
// behind the routers asks all the time.
func TestBootstrap(t *testing.T) {
	testkit.Live(t)
	l := newRacks(t, cluster, frrRack, birdRack)
	boot := l.nodes["n1"]
	for _, n := range l.nodes {
		n.stop(t)
	}
	boot.role = v1alpha1.RoleBootstrap
	l.startAgent(boot, cluster)
	l.awaitAll(vip4, "n1")
	client := l.asks()
	for _, name := range []string{"n2", "n3"} {
		l.startAgent(l.nodes[name], cluster)
	}
	testkit.AwaitWithin(t, time.Minute, "control-plane nodes to announce", func() bool { return l.announces("n2") && l.announces("n3") }, l.states)
	l.awaitAll(vip4, "n1")
	boot.api.Close()
	l.awaitAll(vip4, "n2", "n3")
	boot.stop(t)
	time.AfterFunc(time.Second, client.stop)
	client.expect(t, 3) // routers move requests that are open to another node
}

// announces reports whether a node announces the VIPs in all its sessions.
func (l *racks) announces(name string) bool {
	s, err := state.Read[state.BGP](l.nodes[name].state)
	return err == nil && s != nil && len(s.VIPs) > 0 && s.VIPs[0].Announced && !slices.ContainsFunc(s.Peers, func(p state.BGPPeer) bool { return !p.Carries() })
}

// loadClient asks for the VIP all the time.
type loadClient struct {
	stop func()
	done chan struct{}
	by   []string // the nodes that answered, in order, with the number of answers
	all  int
	lost int
}

func (l *racks) asks() *loadClient {
	end := make(chan struct{})
	a := &loadClient{stop: sync.OnceFunc(func() { close(end) }), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		last, n := "", 0
		for {
			select {
			case <-end:
				a.by = append(a.by, fmt.Sprint(last, " ", n))
				return
			default:
			}
			by := l.ask(vip4)
			if a.all++; by == "" {
				a.lost++
			}
			if by != last && n > 0 {
				a.by, n = append(a.by, fmt.Sprint(last, " ", n)), 0
			}
			last = by
			n++
		}
	}()
	l.t.Cleanup(a.stop)
	return a
}

// expect ends the client, and compares the requests without an answer.
func (a *loadClient) expect(t *testing.T, lost int) {
	t.Helper()
	<-a.done
	t.Logf("%d requests, %d without an answer; answers by %v", a.all, a.lost, a.by[:min(len(a.by), 20)])
	if a.lost > lost {
		t.Errorf("%d of %d requests without an answer", a.lost, a.all)
	}
}
