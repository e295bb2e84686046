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
	// Link is the link with the node's addresses, Addresses those that it has; both empty
	// if there is none.
	Link      string
	Addresses []netip.Addr
	// Published reports that the host owns the name and has announced it.
	Published bool
	// Err is a conflictError or an error of the kernel; the publisher retries.
	Err error
}

// publisher publishes <host>.local (A, AAAA) and the host's workstation service.
type publisher struct {
	// Host is the first label of the node's name.
	Host string
	// Addresses sends the node's addresses. Each value replaces the previous one; nothing is
	// published before the first. VIPs must not be among them: others would take them for
	// nodes.
	Addresses <-chan []netip.Addr
	// Notify is called from run with every change of the state; it may be nil.
	Notify func(publisherState)
}

// Intervals (RFC 6762 sections 8.1, 8.2, 8.3 and 9).
const (
	probes        = 3
	probeInterval = 250 * time.Millisecond
	deferral      = time.Second
	announcements = 2
	announceAfter = time.Second
	conflictWait  = 5 * time.Second
	conflictMost  = time.Minute
	// formerFor is how long earlier records of the host cause no conflict.
	formerFor = 10 * time.Second
)

// run publishes until ctx ends, and then withdraws the records. It returns an error only
// for an invalid host; others are in the state.
func (p *publisher) run(ctx context.Context) error {
	if err := validateHost(p.Host); err != nil {
		return err
	}
	run := &publisherRun{publisher: p, at: station{addresses: p.Addresses}, last: map[string]time.Time{}}
	defer run.at.detach()
	run.at.run(ctx, run)
	run.goodbye()
	return nil
}

type phase int

const (
	away       phase = iota // no link
	probing                 // checking that the name is free
	announcing              // the name is free; announcing it
	settled
	conflicting // the name is taken; probing again later
)

type publisherRun struct {
	*publisher
	at      station
	records records
	state   publisherState

	phase phase
	step  int           // probes or announcements sent
	next  time.Time     // next action of the phase
	wait  time.Duration // after the last conflict; 0 without
	// contested reports that the host owned the name until another claimed it.
	contested bool

	former      records // earlier records of the host
	formerUntil time.Time
	last        map[string]time.Time // last multicast of each record
	delayed     []delayed
}

// delayed is a response that waits.
type delayed struct {
	at    time.Time
	reply reply
}

// moved publishes at the new place of the addresses.
func (p *publisherRun) moved(before place, err error) {
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
		// The host owns the name; the addresses changed (section 8.4).
		if gone := old.own().without(p.records); len(gone) > 0 {
			p.at.send(goodbye(gone))
		}
		p.enter(announcing, 0)
	default:
		// Spread the probes of hosts that start together.
		p.enter(probing, rand.N(probeInterval))
	}
	p.notify(err)
}

// enter begins a phase, whose first action follows after the delay.
func (p *publisherRun) enter(next phase, delay time.Duration) {
	p.phase, p.step, p.next = next, 0, time.Now().Add(delay)
}

func (p *publisherRun) act() {
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

func (p *publisherRun) probe(now time.Time) {
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

func (p *publisherRun) announce(now time.Time) {
	if err := p.at.send(response(p.records, nil)); err != nil {
		p.failed(err)
		return
	}
	p.sent(p.records, now)
	p.step, p.next = p.step+1, now.Add(announceAfter)
	if p.step == announcements {
		p.phase = settled
	}
	p.notify(nil)
}

// failed restarts probing after a send error.
func (p *publisherRun) failed(err error) {
	p.enter(probing, deferral)
	p.notify(err)
}

func (p *publisherRun) nextAction() time.Time {
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

func (p *publisherRun) notify(err error) {
	next := publisherState{
		Link:      p.at.place.name,
		Addresses: p.at.place.addresses,
		Published: p.phase == settled || p.phase == announcing && p.step > 0,
		Err:       err,
	}
	if p.phase == announcing && p.step == 0 && p.state.Published {
		next.Published = true // the name did not change
	}
	var conflict, last *conflictError
	if errors.As(err, &conflict) && errors.As(p.state.Err, &last) && conflict.Name == last.Name && p.state.Link == next.Link {
		return // already notified
	}
	if !reflect.DeepEqual(next, p.state) {
		p.state = next
		if p.Notify != nil {
			p.Notify(next)
		}
	}
}

// goodbye withdraws the published records.
func (p *publisherRun) goodbye() {
	if p.at.group != nil && (p.phase == announcing || p.phase == settled) {
		p.at.send(goodbye(p.records.own()))
	}
}
