package nodes

import (
	"testing"
	"time"

	"github.com/vipgen/vipgen/api/v1alpha1"
	"github.com/vipgen/vipgen/internal/testkit"
)

func TestHardCase05Servers(t *testing.T) {
	const vip, local = "https://api-int.demo.example.com:6443", "https://localhost:6443"
	peers := []v1alpha1.Peer{
		{Name: "bootstrap", Role: "bootstrap", Addresses: testkit.Addrs("192.0.2.9")},
		{Name: "master-0", Role: "master", Addresses: testkit.Addrs("192.0.2.10", "192.0.2.20", "2001:db8::10")},
		{Name: "master-1", Role: "master", Addresses: testkit.Addrs("192.0.2.11")},
		{Name: "worker-0", Role: "worker", Addresses: testkit.Addrs("192.0.2.12")},
	}
	const boot, m0, m06, m1 = "https://192.0.2.9:6443", "https://192.0.2.10:6443", "https://[2001:db8::10]:6443", "https://192.0.2.11:6443"
	for name, c := range map[string]struct {
		self, role, server string
		peers              []v1alpha1.Peer
		external           bool
		want               []string
	}{
		"bootstrap":              {"localhost", "bootstrap", vip, peers, false, []string{local}},
		"control plane":          {"master-0", "master", vip, peers, false, []string{local, m1, boot}},
		"control plane, alone":   {"master-0", "master", vip, nil, false, []string{local}},
		"external VIP":           {"master-0", "master", vip, nil, true, []string{local, vip}},
		"arbiter, peers known":   {"arbiter-0", "arbiter", vip, peers[1:3], false, []string{m1, m0, m06}},
		"arbiter, none known":    {"arbiter-0", "arbiter", vip, nil, false, []string{vip}},
		"worker":                 {"worker-0", "worker", vip, peers, false, []string{m0, m1, m06, boot, vip}},
		"another worker":         {"worker-2", "worker", vip, peers[1:3], false, []string{m0, m1, m06, vip}},
		"custom pool":            {"infra-0", "infra", vip, nil, false, []string{vip}},
		"kubeconfig of a peer":   {"worker-0", "worker", m1, peers[2:3], false, []string{m1}},
		"no kubeconfig's server": {"worker-0", "worker", "", peers[2:3], false, []string{m1}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := testSpec(6443)
			if c.external {
				spec.LoadBalancer = v1alpha1.LoadBalancerExternal
			}
			testkit.Equal(t, c.want, servers(spec, c.self, c.role, c.server, c.peers))
		})
	}
}

func TestFailures(t *testing.T) {
	now := time.Unix(1000, 0)
	f := failures{}
	if f.backingOff("a", now) {
		t.Error("away before it failed")
	}
	if !f.add("a", now) {
		t.Error("the first failure is no news")
	}
	for range 10 {
		if !f.backingOff("a", now.Add(backoffMin/2)) || f.backingOff("a", now.Add(backoffMax)) {
			t.Errorf("away until %v", f["a"].until.Sub(now))
		}
		if f.add("a", now) {
			t.Error("another failure is news")
		}
	}
	if wait := f["a"].until.Sub(now); wait > backoffMax || wait < backoffMax*3/4 {
		t.Errorf("after many failures away for %v", wait)
	}
	if f.retry("a"); f.backingOff("a", now) {
		t.Error("away after retry")
	}
	f.retry("b")
}
