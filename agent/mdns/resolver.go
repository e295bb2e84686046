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

// resolver collects the hosts on the node's link that publish the workstation service,
// this node included.
type resolver struct {
	// Addresses sends the node's addresses, which determine the link. Each value replaces
	// the previous one; nothing happens before the first.
	Addresses <-chan []netip.Addr
	// Notify is called from run with all hosts, by name, after changes.
	Notify func([]state.Host)
	// Report is called with a new problem, and with nil when it is solved; it may be nil.
	Report func(error)
}

// Intervals of questions (RFC 6762 section 5.2): the first after a short delay, then less
// and less often.
const (
	firstQuestion = 20 * time.Millisecond
	questionAgain = time.Second
	questionMost  = time.Hour
	// maxRecords keeps a query within a packet of 1,500 bytes.
	maxRecords = 16
	// maxQuestions and questionPause bound the questions that others can cause,
	// evaluatePause how often the hosts are evaluated (hard case 41).
	maxQuestions  = 64
	questionPause = 250 * time.Millisecond
	evaluatePause = 100 * time.Millisecond
)

func (r *resolver) run(ctx context.Context) {
	run := &resolverRun{resolver: r, at: station{addresses: r.Addresses}, cache: newCache()}
	defer run.at.detach()
	run.at.run(ctx, run)
}

type resolverRun struct {
	*resolver
	at    station
	cache *cache
	next  time.Time     // next question for the service
	pause time.Duration // until the one after that
	asked time.Time     // last question of any kind
	// evaluated is the time of the last evaluation, actAt its result.
	evaluated, actAt time.Time
	hosts            []state.Host
	err              string
}

// moved asks at the new place. Cached records stay until they expire.
func (r *resolverRun) moved(_ place, err error) {
	r.report(err)
	r.restart()
}

// receive caches a response, and asks for missing records.
func (r *resolverRun) receive(in packet) {
	if !in.msg.Response {
		return
	}
	if r.cache.learn(in.msg, in.from.Addr(), time.Now()) {
		r.restart()
	}
}

// restart begins a new series of questions, unless one just began.
func (r *resolverRun) restart() {
	next := time.Now().Add(firstQuestion + rand.N(sharedSpread))
	if least := r.asked.Add(questionAgain); next.Before(least) {
		next = least
	}
	if r.pause = questionAgain; r.next.IsZero() || next.Before(r.next) {
		r.next = next
	}
}

// act sends due questions.
func (r *resolverRun) act() {
	now := time.Now()
	r.cache.expire(now)
	r.evaluated = time.Time{}
	if r.at.group == nil || now.Sub(r.asked) < questionPause {
		return
	}
	questions := r.cache.due(now, maxQuestions)
	if !now.Before(r.next) {
		msg := &dns.Msg{Answer: r.cache.knownInstances(now, maxRecords)}
		msg.Question = []dns.Question{question(service, dns.TypePTR)}
		r.report(r.at.send(msg))
		missing := r.cache.missing(now)
		questions = append(questions, missing[:min(len(missing), maxQuestions)]...)
		r.asked, r.next, r.pause = now, now.Add(r.pause), min(2*r.pause, questionMost)
	}
	for chunk := range slices.Chunk(questions, maxRecords) {
		r.report(r.at.send(&dns.Msg{Question: chunk}))
		r.asked = now
	}
}

// nextAction notifies of changed hosts, and returns the time of the next change or
// question. It evaluates at most every evaluatePause, at any packet rate.
func (r *resolverRun) nextAction() time.Time {
	now := time.Now()
	if again := r.evaluated.Add(evaluatePause); now.Before(again) {
		return earlier(r.actAt, again)
	}
	r.evaluated = now
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
	r.actAt = r.cache.next(next)
	for _, least := range []time.Time{now.Add(firstQuestion), r.asked.Add(questionPause)} {
		if r.actAt.Before(least) {
			r.actAt = least
		}
	}
	return r.actAt
}

func (r *resolverRun) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != r.err && r.Report != nil {
		r.Report(err)
	}
	r.err = text
}
