package mdns

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"time"
)

type publisherState struct {
	// Link is the name of the link with the node's addresses, and Addresses are
	// those of them that are there. Empty where there is none.
	Link      string
	Addresses []netip.Addr
	// Published is whether the name is the host's and was announced.
	Published bool
	// Err is what is in the way: a conflictError, or what the kernel said. It
	// is tried again.
	Err error
}

// publisher publishes <host>.local (A, AAAA) and the host's workstation service.
type publisher struct {
	// Host is the first label of the node's name.
	Host string
	// Addresses are the node's. Each value replaces the one before; nothing
	// happens before the first. Never VIPs: others would take them for nodes.
	Addresses <-chan []netip.Addr
	// Notify is called with every change of the state, by run's goroutine. May
	// be nil.
	Notify func(publisherState)
}

// How long things take (RFC 6762 sections 8.1, 8.2, 8.3 and 9).
const (
	probes        = 3
	probeInterval = 250 * time.Millisecond
	deferral      = time.Second
	announcements = 2
	announceAfter = time.Second
	conflictWait  = 5 * time.Second
	conflictMost  = time.Minute
	// formerFor is how long a host's own earlier records are not taken for those
	// of another.
	formerFor = 10 * time.Second
)

// run publishes until ctx ends, and then says goodbye. The only error is that of
// a host that is none; others are in the state.
func (p *publisher) run(ctx context.Context) error {
	if err := validateHost(p.Host); err != nil {
		return err
	}
	run := &publishing{publisher: p, at: station{addresses: p.Addresses}, last: map[string]time.Time{}}
	defer run.at.detach()
	run.at.run(ctx, run)
	run.goodbye()
	return nil
}

// phase is how far a name has come.
type phase int

const (
	away       phase = iota // no link to publish on
	probing                 // asking whether the name is free
	announcing              // it is; telling everybody
	settled
	conflicting // it is not; will ask again
)

// publishing is one run of a publisher.
type publishing struct {
	*publisher
	at      station
	records records
	state   publisherState

	phase phase
	step  int           // probes or announcements that were sent
	next  time.Time     // when the phase has something to do
	wait  time.Duration // after the last conflict; 0 after none
	// contested is whether the name was the host's until another spoke up.
	contested bool

	former      records // the host's own of before
	formerUntil time.Time
	last        map[string]time.Time // when a record was last multicast
	delayed     []delayed
}

// delayed is a response that waits.
type delayed struct {
	at    time.Time
	reply reply
}

// moved publishes at the place where the addresses are now.
func (p *publishing) moved(before place, err error) {
	old := p.records
	p.records = newRecords(p.Host, p.at.place.addresses)
	if len(old) > 0 {
		p.former, p.formerUntil = append(p.former, old.without(p.records)...), time.Now().Add(formerFor)
	}
	p.delayed, p.last = nil, map[string]time.Time{}
	switch {
	case p.at.group == nil:
		p.enter(away, 0)
	case before.link == p.at.place.link && (p.phase == announcing || p.phase == settled):
		// The name is the host's; what it stands for changed (section 8.4).
		if gone := old.own().without(p.records); len(gone) > 0 {
			p.at.send(goodbye(gone))
		}
		p.enter(announcing, 0)
	default:
		// Hosts that start together do not ask together.
		p.enter(probing, rand.N(probeInterval))
	}
	p.tell(err)
}

// enter begins a phase; it has something to do after the delay.
func (p *publishing) enter(next phase, delay time.Duration) {
	p.phase, p.step, p.next = next, 0, time.Now().Add(delay)
}

// act does what is due.
func (p *publishing) act() {
	now := time.Now()
	if now.After(p.formerUntil) {
		p.former = nil
	}
	p.flushDelayed(now)
	if now.Before(p.next) {
		return
	}
	switch p.phase {
	case probing:
		p.probe(now)
	case announcing:
		p.announce(now)
	case conflicting:
		p.enter(probing, rand.N(probeInterval))
	}
}

func (p *publishing) probe(now time.Time) {
	if p.step == probes {
		p.wait, p.contested = 0, false
		p.enter(announcing, 0)
		p.announce(now)
		return
	}
	if err := p.at.send(p.records.probe()); err != nil {
		p.failed(err)
		return
	}
	p.step, p.next = p.step+1, now.Add(probeInterval)
}

func (p *publishing) announce(now time.Time) {
	if err := p.at.send(response(p.records, nil)); err != nil {
		p.failed(err)
		return
	}
	p.sent(p.records, now)
	p.step, p.next = p.step+1, now.Add(announceAfter)
	if p.step == announcements {
		p.phase = settled
	}
	p.tell(nil)
}

// failed begins anew, some time after a message could not be sent.
func (p *publishing) failed(err error) {
	p.enter(probing, deferral)
	p.tell(err)
}

// settle says when the next thing is due.
func (p *publishing) settle() time.Time {
	due := time.Now().Add(time.Hour)
	if p.phase != away && p.phase != settled {
		due = p.next
	}
	for _, d := range p.delayed {
		if d.at.Before(due) {
			due = d.at
		}
	}
	return due
}

// tell makes the state known if it changed.
func (p *publishing) tell(err error) {
	next := publisherState{
		Link:      p.at.place.name,
		Addresses: p.at.place.addresses,
		Published: p.phase == settled || p.phase == announcing && p.step > 0,
		Err:       err,
	}
	if p.phase == announcing && p.step == 0 && p.state.Published {
		next.Published = true // under the same name all along
	}
	var conflict, last *conflictError
	if errors.As(err, &conflict) && errors.As(p.state.Err, &last) && conflict.Name == last.Name && p.state.Link == next.Link {
		return // the same once more
	}
	if !reflect.DeepEqual(next, p.state) {
		p.state = next
		if p.Notify != nil {
			p.Notify(next)
		}
	}
}

// goodbye takes back what was published.
func (p *publishing) goodbye() {
	if p.at.group != nil && (p.phase == announcing || p.phase == settled) {
		p.at.send(goodbye(p.records.own()))
	}
}
