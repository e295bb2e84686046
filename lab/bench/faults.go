package bench

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/templates/manifest"
)

// powerLoss cuts the holder's power until the end of the run.
func powerLoss(_ context.Context, r *run) error {
	r.later(func(ctx context.Context) error { return r.heal(ctx, r.holder) })
	return r.kill(r.holder)
}

// backend returns a control-plane node that does not hold the VIP.
func backend(r *run) []*lab.Node { return []*lab.Node{r.backup(r.holder)} }

// backendPowerLoss cuts the power of a node that does not hold the VIP.
func backendPowerLoss(_ context.Context, r *run) error {
	n := backend(r)[0]
	r.later(func(ctx context.Context) error { return r.heal(ctx, n) })
	r.mark(n.Name + " loses its power")
	return r.kill(n)
}

func linkDown(_ context.Context, r *run) error {
	r.later(func(context.Context) error { return r.holder.PlugIn() })
	return r.holder.Unplug()
}

// monitorContainer supervises keepalived in the reference.
const monitorContainer = "keepalived-monitor"

func keepalivedCrash(ctx context.Context, r *run) error {
	return r.holder.Signal(ctx, manifest.Keepalived, "keepalived", "keepalived", syscall.SIGKILL)
}

// agentCrash kills the supervisor of keepalived: vipgen's agent is the first process of its
// container, so that keepalived ends with it.
func agentCrash(ctx context.Context, r *run) error {
	name := "keepalived"
	if r.Reference {
		name = monitorContainer
	}
	return killFirst(ctx, r.holder, name)
}

// bothCrash kills the supervisor and keepalived. When the first process of a container ends, the
// kernel ends all others.
func bothCrash(ctx context.Context, r *run) error {
	err := killFirst(ctx, r.holder, "keepalived")
	if r.Reference {
		err = errors.Join(err, killFirst(ctx, r.holder, monitorContainer))
	}
	return err
}

func killFirst(ctx context.Context, n *lab.Node, container string) error {
	c, err := n.Container(ctx, manifest.Keepalived, container)
	if err != nil {
		return err
	}
	return c.Signal(syscall.SIGKILL)
}

// haproxyRuns waits until every HAProxy has run for long enough that its crash does not count as a
// repeated one.
func haproxyRuns(ctx context.Context, _ *run) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(10 * time.Second):
		return nil
	}
}

func haproxyCrash(ctx context.Context, r *run) error {
	return r.holder.Signal(ctx, manifest.HAProxy, "haproxy", "haproxy", syscall.SIGKILL)
}

// haproxyHang stops HAProxy with SIGSTOP. After the run, its remaining processes continue.
func haproxyHang(ctx context.Context, r *run) error {
	hung, err := r.holder.Running(ctx, manifest.HAProxy, "haproxy")
	if err != nil {
		return err
	}
	r.later(func(context.Context) error {
		select {
		case <-hung.Done(): // kubelet has replaced the container
			return nil
		default:
		}
		_, err := hung.KillProcess("haproxy", syscall.SIGCONT)
		return err
	})
	_, err = hung.KillProcess("haproxy", syscall.SIGSTOP)
	return err
}

func apiCrash(_ context.Context, r *run) error {
	r.later(func(ctx context.Context) error {
		return errors.Join(r.holder.API.Launch(), r.holder.API.AwaitReady(ctx))
	})
	return r.holder.API.Kill()
}

// apiRestart shuts the API server down and starts it again.
func apiRestart(ctx context.Context, r *run) error {
	s := r.holder.API
	if err := s.Stop(ctx); err != nil {
		r.later(func(ctx context.Context) error { return errors.Join(s.Launch(), s.AwaitReady(ctx)) })
		return err
	}
	return errors.Join(s.Launch(), s.AwaitReady(ctx))
}

// noHAProxy disables the HAProxy pod on every node.
func noHAProxy(ctx context.Context, r *run) error {
	for _, n := range r.ControlPlane() {
		r.remove(ctx, n, manifest.HAProxy)
	}
	return nil
}

func podsGone(ctx context.Context, r *run) error {
	return errors.Join(r.awaitRemoved(), r.awaitAnswers(ctx))
}

func plannedStop(ctx context.Context, r *run) error {
	name := manifest.Keepalived
	if r.Routed {
		name = manifest.BGP
	}
	c, err := r.holder.Container(ctx, name, name)
	if err != nil {
		return err
	}
	return c.Signal(syscall.SIGTERM)
}

// nodeGone powers off a node that held the VIP and may try to take it back later.
func nodeGone(ctx context.Context, r *run) error {
	gone, err := r.affected(ctx, r.scenario.VIP, 0)
	if err != nil {
		return err
	}
	r.gone = gone
	if err := gone.Kill(); err != nil {
		return err
	}
	r.later(func(ctx context.Context) error {
		if gone.On() {
			return nil
		}
		return gone.Heal(ctx)
	})
	return r.awaitWithdrawn(ctx)
}

// awaitWithdrawn waits until another node has the VIP than the one that is gone, or routers send it
// nothing.
func (r *run) awaitWithdrawn(ctx context.Context) error {
	if !r.Routed {
		_, err := r.Holder(ctx, r.vip)
		return err
	}
	return lab.AwaitEvery(ctx, costlyPollEvery, "the routes to "+r.gone.Name+" to go", func() (bool, error) {
		return len(r.portsTo(r.group(r.scenario.VIP), r.gone.Address(), 256)) == 0, nil
	})
}

func nodeReturns(ctx context.Context, r *run) error { return r.heal(ctx, r.gone) }

// settles waits until the cluster is healthy again and clients get answers.
func settles(ctx context.Context, r *run) error {
	if err := r.settled(ctx); err != nil {
		return err
	}
	return r.awaitAnswers(ctx)
}

// partition separates the holder from all other machines, the client included.
func partition(_ context.Context, r *run) error {
	r.later(func(context.Context) error { return r.Join() })
	return r.Partition(r.holder.Name)
}

// partitionHeals joins the network as soon as clients get answers again, and returns when one
// holder is left.
func partitionHeals(ctx context.Context, r *run) error {
	if err := r.awaitAnswers(ctx); err != nil {
		return err
	}
	if err := r.Join(); err != nil {
		return err
	}
	r.healed = r.mark("the network heals")
	if _, err := r.Holder(ctx, r.vip); err != nil {
		return err
	}
	return r.awaitAnswers(ctx)
}

// routerGone kills the holder's router: its pod is still ready in the API.
func routerGone(_ context.Context, r *run) error {
	for _, g := range r.Spec().Groups {
		if s := r.holder.Router(g.Controller); g.Role == ingress && s != nil {
			r.later(func(context.Context) error { return s.Start() })
			s.Stop()
			return nil
		}
	}
	return errors.New(r.holder.Name + " holds the ingress VIP without a router")
}

func bootstrapEnds(ctx context.Context, r *run) error { return r.EndBootstrap(ctx) }

func bootstrapGone(ctx context.Context, r *run) error {
	err := lab.Await(ctx, "the bootstrap host to release the VIP", func() (bool, error) {
		has, err := r.Bootstrap().Has(r.vip)
		return !has, err
	})
	if err != nil {
		return err
	}
	if _, err := r.Holder(ctx, r.vip); err != nil {
		return err
	}
	return r.awaitAnswers(ctx)
}
