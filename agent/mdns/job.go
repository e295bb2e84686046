package mdns

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vipgen/vipgen/agent/facts"
	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/state"
	"github.com/vipgen/vipgen/internal/liveness"
)

// pause is the least interval between two published states: hosts on the link can change
// at any rate.
const pause = 200 * time.Millisecond

// republishAfter is the delay after a state could not be published.
const republishAfter = 5 * time.Second

// Job publishes the node's name and addresses, and collects the published hosts of
// others.
type Job struct {
	// Source provides the node's name; its first label is the host.
	Source *facts.Source
	State  *state.Dir
	Log    *slog.Logger

	watchdog liveness.Watchdog
	last     atomic.Pointer[state.MDNS]
	failing  logging.Transitions

	host    string
	changed chan struct{} // holds a value while changes are pending

	mu       sync.Mutex
	unfit    error          // why the host cannot be published
	chosen   error          // why the node has no address
	name     publisherState // the publisher's
	hosts    []state.Host   // the resolver's
	resolver error
}

// Run publishes and collects until ctx ends, and then withdraws the name.
func (j *Job) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	j.changed = make(chan struct{}, 1)
	j.host, _, _ = strings.Cut(strings.ToLower(j.Source.Name), ".")
	j.unfit = publishable(j.host)
	ours, theirs := make(chan []netip.Addr, 1), make(chan []netip.Addr, 1)
	publisher := publisher{Host: j.host, Addresses: ours, Notify: func(s publisherState) { j.set(func() { j.name = s }) }}
	resolver := resolver{
		Addresses: theirs,
		Notify:    func(hosts []state.Host) { j.set(func() { j.hosts = j.others(hosts) }) },
		Report:    func(err error) { j.set(func() { j.resolver = err }) },
	}
	var all sync.WaitGroup
	if j.unfit == nil {
		all.Go(func() { publisher.run(ctx) }) // its only error is excluded by publishable
	}
	all.Go(func() { resolver.run(ctx) })
	all.Go(func() { j.publishChanges(ctx) })
	var last []netip.Addr
	err := j.Source.Watch(ctx, func(bool) {
		j.watchdog.Reset()
		if now, ok := j.addresses(); ok && !slices.Equal(now, last) {
			last = now
			replace(ours, now)
			replace(theirs, now)
		}
	})
	stop() // exit when the watch fails: kubelet starts the job again
	all.Wait()
	return err
}

// publishable returns an error if other nodes could not find this one by the host name.
func publishable(host string) error {
	if host == "localhost" { // every machine's name for itself (RFC 6761 section 6.3)
		return errors.New("the node is called localhost")
	}
	return validateHost(host)
}

// addresses returns the addresses to publish, possibly none. ok is false while they are
// unknown: the previous ones stay.
func (j *Job) addresses() (out []netip.Addr, ok bool) {
	choice, err := j.Source.Choice()
	for _, a := range choice.Addresses {
		if a.Found() {
			out = append(out, a.Address.Addr())
		}
	}
	why := err
	if err == nil && len(out) == 0 {
		why = errors.New(choice.Missing()[0].Why)
	}
	j.set(func() { j.chosen = why })
	return out, err == nil
}

// others returns the hosts without this node's own name.
func (j *Job) others(hosts []state.Host) []state.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h state.Host) bool { return h.Name == j.host })
}

// replace sets the value in a channel of capacity 1; it must be its only sender.
func replace[T any](to chan T, v T) {
	select {
	case <-to:
	default:
	}
	to <- v
}

// set changes state under the lock and wakes publish.
func (j *Job) set(change func()) {
	j.mu.Lock()
	change()
	j.mu.Unlock()
	select {
	case j.changed <- struct{}{}:
	default:
	}
}

func (j *Job) state() state.MDNS {
	problem := j.Source.Problem()
	j.mu.Lock()
	defer j.mu.Unlock()
	p := state.MDNS{
		Name: j.host + ".local", Announced: j.name.Published,
		Interface: j.name.Link, Addresses: j.name.Addresses, Hosts: j.hosts, Problem: problem,
	}
	if p.Problem == "" && j.resolver != nil {
		p.Problem = j.resolver.Error()
	}
	if c, ok := errors.AsType[*conflictError](j.name.Err); ok {
		p.Conflict = (*state.Conflict)(c)
	}
	switch {
	case p.Announced:
	case j.unfit != nil:
		p.Why = j.unfit.Error()
	case j.name.Err != nil:
		p.Why = j.name.Err.Error()
	case j.name.Link != "":
		p.Why = "probing whether the name is free"
	case j.chosen != nil:
		p.Why = j.chosen.Error()
	default:
		p.Why = "no link that is up has the node's address"
	}
	return p
}

// publishChanges publishes and logs changes of the state, at most every pause.
func (j *Job) publishChanges(ctx context.Context) {
	var last state.MDNS
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.changed:
		case <-again:
		}
		now := j.state()
		j.last.Store(&now)
		err := j.State.Publish(now)
		j.failing.Error(j.Log, err, "cannot publish the state of mDNS", "state published again")
		if again = nil; err != nil {
			again = time.After(republishAfter)
		}
		logChange(j.Log, last, now)
		last = now
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
