package mdns

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/vipgen/vipgen/agent/state"
)

// resolver collects the hosts on the node's link that publish the workstation
// service, the node's own among them.
type resolver struct {
	// Addresses are the node's: they say which link is meant. Each value
	// replaces the one before; nothing happens before the first.
	Addresses <-chan []netip.Addr
	// Notify is called with all hosts, by name, whenever they change, by run's
	// goroutine.
	Notify func([]state.Host)
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
	// maxQuestions and questionPause bound what others can make the node ask, and
	// look how often it works out what it knows (hard case 41).
	maxQuestions  = 64
	questionPause = 250 * time.Millisecond
	look          = 100 * time.Millisecond
)

// run collects until ctx ends.
func (r *resolver) run(ctx context.Context) {
	run := &resolving{resolver: r, at: station{addresses: r.Addresses}, cache: newCache()}
	defer run.at.detach()
	run.at.run(ctx, run)
}

// resolving is one run of a resolver.
type resolving struct {
	*resolver
	at    station
	cache *cache
	next  time.Time     // when to ask for the service again
	pause time.Duration // until the time after that
	asked time.Time     // when anything was asked last
	// looked is when it was last worked out what is known, and when to act.
	looked, acts time.Time
	hosts        []state.Host
	err          string
}

// moved asks at the new place. What is known stands until its time is over.
func (r *resolving) moved(_ place, err error) {
	r.complain(err)
	r.soon()
}

// receive takes what a response says, and asks for what it leaves open.
func (r *resolving) receive(in packet) {
	if !in.msg.Response {
		return
	}
	if r.cache.learn(in.msg, in.from.Addr(), time.Now()) {
		r.soon()
	}
}

// soon makes the questions begin anew, unless they did just before.
func (r *resolving) soon() {
	next := time.Now().Add(firstQuestion + rand.N(sharedSpread))
	if least := r.asked.Add(questionAgain); next.Before(least) {
		next = least
	}
	if r.pause = questionAgain; r.next.IsZero() || next.Before(r.next) {
		r.next = next
	}
}

// act sends the questions that are due.
func (r *resolving) act() {
	now := time.Now()
	r.cache.expire(now)
	r.looked = time.Time{}
	if r.at.group == nil || now.Sub(r.asked) < questionPause {
		return
	}
	questions := r.cache.due(now, maxQuestions)
	if !now.Before(r.next) {
		msg := &dns.Msg{Answer: r.cache.knownInstances(now, maxRecords)}
		msg.Question = []dns.Question{question(service, dns.TypePTR)}
		r.complain(r.at.send(msg))
		missing := r.cache.missing(now)
		questions = append(questions, missing[:min(len(missing), maxQuestions)]...)
		r.asked, r.next, r.pause = now, now.Add(r.pause), min(2*r.pause, questionMost)
	}
	for some := range slices.Chunk(questions, maxRecords) {
		r.complain(r.at.send(&dns.Msg{Question: some}))
		r.asked = now
	}
}

// settle makes the hosts known if they changed, and says when they may change
// again or there is something to ask. It looks at a pace, however many packets come.
func (r *resolving) settle() time.Time {
	now := time.Now()
	if again := r.looked.Add(look); now.Before(again) {
		return earlier(r.acts, again)
	}
	r.looked = now
	if r.cache.changed {
		if hosts := r.cache.hosts(now); !reflect.DeepEqual(hosts, r.hosts) {
			r.hosts = hosts
			r.Notify(hosts)
		}
	}
	next := now.Add(time.Hour)
	if r.at.group != nil {
		next = r.next
	}
	r.acts = r.cache.next(next)
	for _, least := range []time.Time{now.Add(firstQuestion), r.asked.Add(questionPause)} {
		if r.acts.Before(least) {
			r.acts = least
		}
	}
	return r.acts
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
