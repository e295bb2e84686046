package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

// A node that joins peers with OpenShift's own keepalived waits until each of them has sent
// advertisements to it, or for longer than their monitors may take.
func TestHardCase49JoinDelay(t *testing.T) {
	one := v1alpha1.Peer{Name: "master-1", Role: "master", Addresses: testkit.Addrs("192.0.2.11", "2001:db8::11")}
	two := v1alpha1.Peer{Name: "master-2", Role: "master", Addresses: testkit.Addrs("192.0.2.12")}
	type step struct {
		at   time.Duration
		want time.Duration
	}
	type peers = []v1alpha1.Peer
	s := time.Second
	tests := map[string]struct {
		operators func(at time.Duration) peers
		heard     []string
		nodes     func(at time.Duration) peers // nil: one and two
		link      linkState
		steps     []step
	}{
		"silent backups": {func(time.Duration) peers { return peers{one, two} }, nil, nil, unheld,
			[]step{{0, 7 * s}, {7 * s, 5 * s}, {29 * s, 5 * s}, {42 * s, 3 * s}, {45 * s, 0}}},
		"all have sent adverts": {func(time.Duration) peers { return peers{one, two} }, []string{"2001:db8::11", "192.0.2.12"}, nil, knownTo,
			[]step{{0, 7 * s}, {7 * s, 0}}},
		"one of two has": {func(time.Duration) peers { return peers{one, two} }, []string{"192.0.2.11"}, nil, knownTo,
			[]step{{7 * s, 7 * s}, {14 * s, 5 * s}, {45 * s, 5 * s}, {52 * s, 0}}},
		"the holder never knows it": {func(time.Duration) peers { return peers{one} }, nil, nil, unknownTo,
			[]step{{0, 7 * s}, {44 * s, 1 * s}, {45 * s, 1 * s}, {54 * s, 1 * s}, {55 * s, 0}}},
		"agents start there": {func(at time.Duration) peers {
			if at < 20*s {
				return peers{one}
			}
			return nil
		}, nil, nil, unheld, []step{{0, 7 * s}, {15 * s, 5 * s}, {20 * s, 0}}},
		"another node comes": {func(time.Duration) peers { return peers{one} }, nil, func(at time.Duration) peers {
			if at < 30*s {
				return peers{one}
			}
			return peers{one, two}
		}, unheld, []step{{0, 7 * s}, {29 * s, 5 * s}, {30 * s, 5 * s}, {45 * s, 5 * s}, {74 * s, 1 * s}, {75 * s, 0}}},
		"the list goes on changing": {func(time.Duration) peers { return peers{one} }, nil, func(at time.Duration) peers {
			return peers{one, {Name: fmt.Sprint(at)}}
		}, unheld, []step{{0, 7 * s}, {60 * s, 5 * s}, {120 * s, 5 * s}, {179 * s, 1 * s}, {180 * s, 0}}},
		"none": {func(time.Duration) peers { return nil }, nil, nil, unheld, []step{{0, 7 * s}, {7 * s, 0}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var a joinDelay
			a.operators.senders = testkit.Addrs(tt.heard...)
			began := time.Now()
			for _, step := range tt.steps {
				now, all := began.Add(step.at), peers{one, two}
				if tt.nodes != nil {
					all = tt.nodes(step.at)
				}
				a.operators.follow(now, tt.operators(step.at), all)
				if got := a.wait(now, false, false, func() linkState { return tt.link }); got != step.want {
					t.Fatalf("after %v: %v, want %v", step.at, got, step.want)
				}
			}
		})
	}
}
