package nodes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

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

// handings runs a pace over changes at the given times since the start.
func handings(p pace, changes []time.Duration) (at []time.Duration) {
	start := time.Unix(1000, 0)
	var first, last, handed time.Time
	flush := func(until time.Time) {
		if first.IsZero() {
			return
		}
		if due := p.due(first, last, handed); due.Before(until) {
			first, handed = time.Time{}, due
			at = append(at, due.Sub(start))
		}
	}
	for _, c := range changes {
		now := start.Add(c)
		flush(now)
		last = now
		if first.IsZero() {
			first = now
		}
	}
	flush(start.Add(time.Hour))
	return at
}

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	p := pace{quiet: 250 * ms, max: 3000 * ms}
	for name, c := range map[string]struct{ changes, want []time.Duration }{
		"one":             {[]time.Duration{0}, []time.Duration{250 * ms}},
		"two together":    {[]time.Duration{0, 200 * ms}, []time.Duration{450 * ms}},
		"two far apart":   {[]time.Duration{0, 10_000 * ms}, []time.Duration{250 * ms, 10_250 * ms}},
		"soon after one":  {[]time.Duration{0, 1000 * ms}, []time.Duration{250 * ms, 3250 * ms}},
		"never quiet":     {[]time.Duration{0, 200 * ms, 400 * ms, 600 * ms, 800 * ms}, []time.Duration{1050 * ms}},
		"later than that": {[]time.Duration{0, 3100 * ms}, []time.Duration{250 * ms, 3350 * ms}},
	} {
		testkit.Equal(testkit.In(t, name), c.want, handings(p, c.changes))
	}
}

func TestHardCase20Pace(t *testing.T) {
	p := pace{quiet: 250 * time.Millisecond, max: 3 * time.Second}
	for _, spacing := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 240 * time.Millisecond, 260 * time.Millisecond} {
		var changes []time.Duration
		for i := range 250 {
			changes = append(changes, time.Duration(i)*spacing)
		}
		end := changes[len(changes)-1]
		got := handings(p, changes)
		if most := int(end/p.max) + 2; len(got) > most {
			t.Errorf("%v apart: handed on %d times, more than %d", spacing, len(got), most)
		}
		if last := got[len(got)-1]; last < end || last > end+p.max {
			t.Errorf("%v apart: the last change at %v was handed on at %v", spacing, end, last)
		}
	}
}

// mountFile bind-mounts a new file over another one, as kubelet has a runtime do, and returns
// both paths.
func mountFile(t *testing.T) (onHost, inContainer string) {
	t.Helper()
	dir := t.TempDir()
	onHost, inContainer = filepath.Join(dir, "host"), filepath.Join(dir, "container")
	for _, path := range []string{onHost, inContainer} {
		testkit.Must(t, os.WriteFile(path, nil, 0o600))
	}
	testkit.Must(t, unix.Mount(onHost, inContainer, "", unix.MS_BIND, ""))
	t.Cleanup(func() { unix.Unmount(inContainer, unix.MNT_DETACH) })
	return onHost, inContainer
}

func TestReplaced(t *testing.T) {
	testkit.Privileged(t)
	onHost, inContainer := mountFile(t)
	expect := func(want bool) {
		t.Helper()
		testkit.Equal(t, want, replaced(inContainer))
	}
	expect(false)
	testkit.Must(t, os.WriteFile(onHost, []byte("written in place"), 0o600))
	expect(false)
	testkit.Must(t, os.Rename(onHost, onHost+"-aside"))
	expect(false) // it may return
	testkit.Must(t, os.Remove(onHost+"-aside"))
	expect(true)
	if replaced(onHost) {
		t.Error("a file that is missing counts as replaced")
	}
}

// A job exits only while its kubeconfig has been replaced and no API server answers, and not on
// all nodes at once.
func TestAwaitReplaced(t *testing.T) {
	testkit.Privileged(t)
	onHost, inContainer := mountFile(t)
	run := func(node string, stale func(time.Duration) bool) (replaced bool, after time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			replaced = AwaitReplaced(ctx, inContainer, node, func() bool { return stale(time.Since(began)) })
			after = time.Since(began)
		})
		return replaced, after
	}
	always := func(time.Duration) bool { return true }
	if replaced, _ := run("master-0", always); replaced {
		t.Error("the kubeconfig is as it was")
	}
	testkit.Must(t, os.Remove(onHost))
	ends := map[time.Duration]bool{}
	for _, node := range []string{"master-0", "master-1", "master-2"} {
		replaced, after := run(node, always)
		if !replaced || after < replacedFor || after > replacedFor+replacedSpread+replacedEvery {
			t.Errorf("%s: %v after %v", node, replaced, after)
		}
		ends[after] = true
		if replaced, _ := run(node, func(after time.Duration) bool { return after%replacedFor != 0 }); replaced {
			t.Errorf("%s: an API server answered every %v", node, replacedFor)
		}
	}
	testkit.Equal(t, 3, len(ends))
}
