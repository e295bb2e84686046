package mdns

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Resolver collects the hosts on the node's link that publish the workstation
// service, the node's own among them.
type Resolver struct {
	// Addresses are the node's: they say which link is meant. Each value
	// replaces the one before; nothing happens before the first.
	Addresses <-chan []netip.Addr
	// Notify is called with all hosts, by name, whenever they change, by Run's
	// goroutine.
	Notify func([]Host)
	// Complain is called when there is something in the way, and with nil when
	// it is not any more. May be nil.
	Complain func(error)
}

// When to ask (RFC 6762 section 5.2): at first after a short while, then ever
// less often.
const (
	firstQuestion = 20 * time.Millisecond
	questionAgain = time.Second
	questionMost  = time.Hour
	// maxRecords keeps a query within a packet of 1,500 bytes.
	maxRecords = 16
)

// Run collects until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	run := &resolving{Resolver: r, cache: newCache(), timer: time.NewTimer(time.Hour)}
	defer run.timer.Stop()
	defer run.at.detach()
	ticks := time.NewTicker(lookInterval)
	defer ticks.Stop()

	addresses := r.Addresses
	var places <-chan struct{}
	for {
		if places == nil {
			places, _ = watchPlaces(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case wanted, ok := <-addresses:
			if !ok {
				addresses = nil // the last ones stand
				continue
			}
			run.at.wanted = wanted
			run.look()
		case _, ok := <-places:
			if !ok {
				places = nil
			}
			run.look()
		case <-ticks.C:
			run.look()
		case in := <-run.at.incoming():
			if in.msg.Response {
				run.learn(in.msg, time.Now())
			}
		case <-run.timer.C:
			run.ask(time.Now())
		}
		run.tell(time.Now())
	}
}

// resolving is one run of a Resolver.
type resolving struct {
	*Resolver
	at    attachment
	cache *cache
	timer *time.Timer
	next  time.Time     // when to ask for the service again
	pause time.Duration // until the time after that
	hosts []Host
	err   string
}

// look follows the node to where its addresses are. What is known stands until
// its time is over.
func (r *resolving) look() {
	changed, err := r.at.update()
	if changed {
		r.complain(err)
		r.soon()
	}
}

// learn takes what a response says, and asks for what it leaves open.
func (r *resolving) learn(msg *dns.Msg, now time.Time) {
	if news := r.cache.learn(msg, now); news && len(r.cache.missing(now)) > 0 {
		r.soon()
	}
}

// soon makes the questions begin anew.
func (r *resolving) soon() {
	r.pause = questionAgain
	r.next = time.Now().Add(firstQuestion + rand.N(sharedSpread))
}

// ask sends the questions that are due.
func (r *resolving) ask(now time.Time) {
	r.cache.expire(now)
	questions := r.cache.due(now)
	if r.at.group == nil {
		return
	}
	if !now.Before(r.next) {
		known := r.cache.knownInstances(now)
		msg := &dns.Msg{Answer: known[:min(len(known), maxRecords)]}
		msg.Question = []dns.Question{question(service, dns.TypePTR)}
		r.complain(r.at.send(msg))
		questions = append(questions, r.cache.missing(now)...)
		r.next, r.pause = now.Add(r.pause), min(2*r.pause, questionMost)
	}
	for some := range slices.Chunk(questions, maxRecords) {
		r.complain(r.at.send(&dns.Msg{Question: some}))
	}
}

// tell makes the hosts known if they changed, and sets the timer to when they
// may change or there is something to ask.
func (r *resolving) tell(now time.Time) {
	if hosts := r.cache.hosts(now); !reflect.DeepEqual(hosts, r.hosts) {
		r.hosts = hosts
		r.Notify(hosts)
	}
	next := now.Add(time.Hour)
	if r.at.group != nil {
		next = r.next
	}
	r.timer.Reset(max(0, r.cache.next(next).Sub(now)))
}

func (r *resolving) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != r.err && r.Complain != nil {
		r.Complain(err)
	}
	r.err = text
}
