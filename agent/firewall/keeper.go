package firewall

import (
	"context"
	"reflect"
	"time"

	"github.com/vipgen/vipgen/internal/ruleset"
	"github.com/vipgen/vipgen/internal/ticker"
)

const (
	// defaultInterval is how often a [Keeper] looks without being told to: whether there is a
	// new generation of the kernel's rules.
	defaultInterval = 500 * time.Millisecond
	// readEvery is how often it reads its rules also if there is none.
	readEvery = 10 * time.Second
)

// State is what a [Keeper] knows about the redirect.
type State struct {
	// Redirect is what was asked for.
	Redirect Redirect
	// Serving is whether HAProxy serves, as far as the Keeper was told.
	Serving bool
	// InPlace is whether the kernel has the whole redirect. It is what the health
	// of the load balancer path depends on (hard case 6).
	InPlace bool
	// Own is whether the kernel has it for connections of the node itself wherever the VIPs
	// are.
	Own bool
	// Since is when InPlace last changed.
	Since time.Time
	// Restored counts how often somebody else had changed or removed what was
	// in place, and it was put back.
	Restored int
	// Leftover names what the node has of the operator's redirect, which is removed once
	// InPlace; LeftoverErr is what kept it from that.
	Leftover    string
	LeftoverErr error
	// Err is what kept the Keeper from doing its work at the last attempt. It
	// tries again after the interval.
	Err error
}

// Keeper keeps the redirect in place while HAProxy serves.
type Keeper struct {
	// Redirects are what to keep in place. Nothing happens before the first.
	Redirects <-chan Redirect
	// Serving says whether HAProxy serves. Nothing happens before the first
	// value, so that a Keeper that starts anew leaves what it finds in place
	// until it knows better. When HAProxy serves no more, the redirect is
	// withdrawn and connections reach the API server on this node directly.
	Serving <-chan bool
	// Leaving says whether HAProxy serves for a last while: the redirect stays, and does
	// not count as in place. May be nil.
	Leaving func() bool
	// Ready says whether HAProxy is a better way for connections of the node itself than the
	// holder of a VIP; what is asked for by Redirect.Own is not done while it is not. May be
	// nil: never.
	Ready func() bool
	// Linger is called when Run's ctx has ended, before the redirect is removed. May be nil.
	Linger func(Redirect)
	// Notify is called with every change of the state, by Run's goroutine. May
	// be nil.
	Notify func(State)
	// Turn is called at every turn of the loop, changes or not. May be nil.
	Turn func()
	// Interval is how often to look without an event; 0 is twice a second.
	Interval time.Duration
}

// Run keeps the redirect until ctx ends, and then removes it. It returns what
// kept it from removing it. Errors before that are in the state.
func (k *Keeper) Run(ctx context.Context) error {
	run := keeping{Keeper: k, now: time.Now}
	defer run.generations.Close()
	run.state.Since = run.now()
	interval := k.Interval
	if interval == 0 {
		interval = defaultInterval
	}
	ticks := ticker.New(interval)
	defer ticks.Stop()

	redirects, serving := k.Redirects, k.Serving
	var changed <-chan struct{}
	for {
		if changed == nil {
			// Where it fails, the ticks are left, and try again.
			changed, _ = watch(ctx)
		}
		select {
		case <-ctx.Done():
			return run.end()
		case r, ok := <-redirects:
			if !ok {
				redirects = nil // the last one stands
				continue
			}
			run.redirect(r)
		case run.serving, run.told = <-serving:
			if !run.told {
				serving, run.serving, run.told = nil, false, true // nobody knows any more
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

// keeping is one run of a Keeper.
type keeping struct {
	*Keeper
	now     func() time.Time
	state   State
	asked   *Redirect
	told    bool // whether HAProxy serves
	serving bool
	placed  *Redirect // by this run, and not changed by it since; nil for nothing

	generations ruleset.Generations
	read        reading
	left        leftover
}

// reading is what was found in place when the kernel's rules were read last.
type reading struct {
	redirect   Redirect
	generation uint32 // from before they were read; 0 if what was read does not count
	at         time.Time
}

// redirect takes what is asked for from now on.
func (k *keeping) redirect(r Redirect) {
	k.asked, k.placed = &r, nil
}

// step makes the kernel's rules be what they should be now.
func (k *keeping) step() {
	if k.asked == nil || !k.told {
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
	k.enter(next)
}

// ensure is Ensure, which is left out if it found the same in place before and the kernel's
// rules have not changed since.
func (k *keeping) ensure(want Redirect) (changed bool, err error) {
	generation, err := k.generations.Current()
	if err != nil {
		generation = 0 // it is found out by reading
	}
	known := generation != 0 && generation == k.read.generation && k.now().Sub(k.read.at) < readEvery
	if known && reflect.DeepEqual(want, k.read.redirect) {
		return false, nil
	}
	changed, err = ensure(want)
	k.read = reading{}
	if err == nil && !changed {
		k.read = reading{redirect: want, generation: generation, at: k.now()}
	}
	return changed, err
}

// enter makes next the state and tells, if it differs.
func (k *keeping) enter(next State) {
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

// end removes the table. The redirect counts as gone before it is, so that
// nobody relies on it meanwhile.
func (k *keeping) end() error {
	next := k.state
	next.InPlace, next.Own = false, false
	k.enter(next)
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
