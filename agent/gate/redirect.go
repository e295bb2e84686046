package gate

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/vipgen/vipgen/agent/health"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/api/v1alpha1"
)

// redirects sets, for every API group, the fact whether all of its VIPs are redirected to
// HAProxy, each group separately: a new VIP must not move the others.
type redirects struct {
	dir   *state.Dir
	board *health.Board

	mu     sync.Mutex
	groups []v1alpha1.Group
}

// run sets the facts from the state of the firewall job until ctx ends.
func (r *redirects) run(ctx context.Context) error {
	return onChange(ctx, r.dir, state.Firewall{}, r.poll)
}

func (r *redirects) follow(groups []v1alpha1.Group) {
	r.mu.Lock()
	r.groups = groups
	r.mu.Unlock()
	r.poll()
}

func (r *redirects) poll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	fw, err := state.Read[state.Firewall](r.dir)
	// First the fact that protects the node: with it, a missing redirect is harmless.
	restarting := state.Fact{Name: health.FactRestarting, OK: fw != nil && fw.Restarting}
	if restarting.OK {
		r.board.Set(restarting)
	}
	for _, g := range r.groups {
		if g.Role == v1alpha1.GroupAPI {
			r.board.Set(redirect(&g, fw, err))
		}
	}
	if !restarting.OK {
		r.board.Forget(restarting.Name)
	}
}

// redirect returns the fact of one group from the state of the firewall job, nil if that
// does not run.
func redirect(g *v1alpha1.Group, fw *state.Firewall, err error) state.Fact {
	f := state.Fact{Name: health.Redirect(g)}
	missing := func(vip netip.Addr) bool { return !slices.Contains(fw.VIPs, vip) }
	switch {
	case err != nil:
		f.Why = fmt.Sprintf("invalid state of the firewall job: %v", err)
	case fw == nil:
		f.Why = "the firewall job does not run"
	case !fw.InPlace:
		f.Why = "the firewall job has not placed it"
	case slices.ContainsFunc(g.VIPs, missing):
		f.Why = fmt.Sprintf("the firewall job has not placed that of %s", g.VIPs[slices.IndexFunc(g.VIPs, missing)])
	default:
		f.OK = true
	}
	return f
}
