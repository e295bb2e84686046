package firewall

import (
	"cmp"
	"context"
	"reflect"
	"time"

	"github.com/vipgen/vipgen/internal/netdump"
	"github.com/vipgen/vipgen/internal/ticker"
)

const (
	// defaultInterval is the interval at which a [Keeper] checks the generation of the
	// kernel's rules.
	defaultInterval = 500 * time.Millisecond
	// readEvery is the interval at which it reads its rules even if the generation is
	// unchanged.
	readEvery = 10 * time.Second
)

type State struct {
	// Redirect is the wanted redirect.
	Redirect Redirect
	// Serving reports whether HAProxy serves.
	Serving bool
	// InPlace reports whether the kernel has the whole redirect, a part of the health of
	// the load balancer path (hard case 6).
	InPlace bool
	// Own reports whether the kernel redirects connections of the node itself wherever
	// the VIPs are.
	Own bool
	// Since is the time of the last change of InPlace.
	Since time.Time
	// Restored counts how often the redirect was restored after something else changed or
	// removed it.
	Restored int
	// Leftover describes the operator's redirect on the node, which is removed once
	// InPlace; LeftoverErr is the error of the removal.
	Leftover    string
	LeftoverErr error
	// Err is the error of the last attempt, which is repeated after the interval.
	Err error
}

// Keeper keeps the redirect in place while HAProxy serves.
type Keeper struct {
	// Redirects sends the wanted redirect. Nothing happens before the first.
	Redirects <-chan Redirect
	// Serving sends whether HAProxy serves. Nothing happens before the first value, so
	// that a new Keeper leaves existing rules in place until it is known. When HAProxy
	// stops serving, the redirect is withdrawn, and connections reach the API server on
	// this node directly.
	Serving <-chan bool
	// Leaving reports whether HAProxy is about to stop: the redirect stays, but does not
	// count as in place. It may be nil.
	Leaving func() bool
	// Ready reports whether the node's own connections are better served by HAProxy than
	// by the holder of a VIP; otherwise Redirect.Own has no effect. A nil Ready means
	// never.
	Ready func() bool
	// Linger is called after Run's ctx ended, before the redirect is removed. It may be
	// nil.
	Linger func(Redirect)
	// Notify is called from Run with every change of the state. It may be nil.
	Notify func(State)
	// Turn is called at every turn of the loop. It may be nil.
	Turn func()
	// Interval is the poll interval; 0 means twice a second.
	Interval time.Duration
}

// Run keeps the redirect until ctx ends, then removes it, and returns the error of the
// removal. Earlier errors are in the state.
func (k *Keeper) Run(ctx context.Context) error {
	run := keeperRun{Keeper: k, now: time.Now}
	defer run.generations.Close()
	run.state.Since = run.now()
	ticks := ticker.New(cmp.Or(k.Interval, defaultInterval))
	defer ticks.Stop()

	redirects, serving := k.Redirects, k.Serving
	var changed <-chan struct{}
	for {
		if changed == nil {
			// After an error only the ticks remain, and retry.
			changed, _ = watch(ctx)
		}
		select {
		case <-ctx.Done():
			return run.end()
		case r, ok := <-redirects:
			if !ok {
				redirects = nil // the last one stays
				continue
			}
			run.redirect(r)
		case run.serving, run.known = <-serving:
			if !run.known {
				serving, run.serving, run.known = nil, false, true // not known any more
			}
		case _, ok := <-changed:
			if !ok {
				changed = nil
			}
		case <-ticks.C:
			ticks.Next()
		}
		run.step()
		if k.Turn != nil {
			k.Turn()
		}
	}
}

type keeperRun struct {
	*Keeper
	now     func() time.Time
	state   State
	asked   *Redirect
	known   bool // serving is known
	serving bool
	placed  *Redirect // last one placed by this run; nil for none

	generations netdump.Generations
	read        lastFound
	left        leftover
}

// lastFound is the redirect found at the last reading of the kernel's rules.
type lastFound struct {
	redirect   Redirect
	generation uint32 // before the reading; 0 if the reading does not count
	at         time.Time
}

func (k *keeperRun) redirect(r Redirect) {
	k.asked, k.placed = &r, nil
}

func (k *keeperRun) step() {
	if k.asked == nil || !k.known {
		return
	}
	want := *k.asked
	want.Own = want.Own && k.Ready != nil && k.Ready()
	if !k.serving {
		want, k.placed = Redirect{}, nil
	}
	next := k.state
	next.Redirect, next.Serving = *k.asked, k.serving
	var changed bool
	changed, next.Err = k.ensure(want)
	whole := next.Err == nil && k.serving && len(want.VIPs) > 0
	next.InPlace = whole && (k.Leaving == nil || !k.Leaving())
	next.Own = whole && want.Own
	next.Leftover, next.LeftoverErr = k.leftover(whole)
	if changed && k.placed != nil && k.placed.Own == want.Own {
		next.Restored++
	}
	if next.Err == nil && k.serving {
		k.placed = &want
	}
	k.setState(next)
}

// ensure calls the function ensure unless the same redirect was found before and the
// generation of the kernel's rules is unchanged.
func (k *keeperRun) ensure(want Redirect) (changed bool, err error) {
	generation, err := k.generations.Current()
	if err != nil {
		generation = 0 // always read
	}
	known := generation != 0 && generation == k.read.generation && k.now().Sub(k.read.at) < readEvery
	if known && reflect.DeepEqual(want, k.read.redirect) {
		return false, nil
	}
	changed, err = ensure(want)
	k.read = lastFound{}
	if err == nil && !changed {
		k.read = lastFound{redirect: want, generation: generation, at: k.now()}
	}
	return changed, err
}

// setState sets the state and notifies of changes.
func (k *keeperRun) setState(next State) {
	last := k.state
	if next.InPlace != last.InPlace {
		next.Since = k.now()
	}
	k.state = next
	same := reflect.DeepEqual(next.Redirect, last.Redirect) && next.Serving == last.Serving && next.InPlace == last.InPlace && next.Own == last.Own &&
		next.Restored == last.Restored && text(next.Err) == text(last.Err) &&
		next.Leftover == last.Leftover && text(next.LeftoverErr) == text(last.LeftoverErr)
	if k.Notify != nil && !same {
		k.Notify(next)
	}
}

// end removes the table. The redirect is reported as gone first, so that nothing relies
// on it meanwhile.
func (k *keeperRun) end() error {
	next := k.state
	next.InPlace, next.Own = false, false
	k.setState(next)
	if k.Linger != nil && k.placed != nil {
		k.Linger(*k.asked)
	}
	return remove()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
