package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vipgen/vipgen/internal/vrrp"
	"github.com/vipgen/vipgen/lab"
	"github.com/vipgen/vipgen/lab/testbed/watch"
)

// Stalls configures pauses of a node, as of a virtual machine by its hypervisor.
type Stalls struct {
	// Lengths are the lengths of the pauses.
	Lengths []time.Duration
	// Backup pauses another control-plane node instead of the holder of the API VIP.
	Backup bool
	// Drop drops packets to the node meanwhile. Otherwise its kernel queues them.
	Drop bool
}

// Stalled is the result of the pauses of one length.
type Stalled struct {
	Profile string  `json:"profile"`
	Length  float64 `json:"stall_ms"`
	Runs    int     `json:"runs"`
	// Moved is the number of runs in which any VIP moved.
	Moved int `json:"moved"`
	// Stood is the longest actual pause.
	Stood float64 `json:"longest_stall_ms"`
	// Waited is the longest time between two answers of a client that sends requests to the API VIP
	// all the time. Lost is the maximum of lost requests in a run.
	Waited float64 `json:"longest_without_answer_ms"`
	Lost   int     `json:"requests_lost"`
	// Two is the longest split brain after the node continued.
	Two float64 `json:"split_brain_after_ms"`
}

// Stall pauses a node for each of the lengths, with each profile, for the configured number of
// runs. After an error it returns the results so far.
func Stall(ctx context.Context, cfg Config, how Stalls) (all []Stalled, err error) {
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	for _, p := range cfg.Profiles {
		some, err := stalls(ctx, &cfg, p, how)
		if all = append(all, some...); err != nil {
			return all, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return all, nil
}

const (
	// busy is the maximum excess of a pause that counts; more means that the machine is too busy
	// for the lab.
	busy = 20 * time.Millisecond
	// tries is the maximum number of tries of a run.
	tries = 3
)

func stalls(ctx context.Context, cfg *Config, p Profile, how Stalls) (all []Stalled, err error) {
	s, err := build(ctx, cfg, p, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for number, length := range how.Lengths {
		sum := Stalled{Profile: p.Name, Length: milliseconds(length)}
		for try := 0; sum.Runs < cfg.Runs; try++ {
			one, err := stall(ctx, s, how, length, phase(cfg.Seed, number, sum.Runs))
			if err != nil {
				return all, fmt.Errorf("a stall of %v: %w", length, err)
			}
			if one.stood > length+busy && try < tries*cfg.Runs {
				cfg.Progress(fmt.Sprintf("%s, %v: %v, which does not count: this machine was busy", p.Name, length, one))
				continue
			}
			sum.add(one)
			cfg.Progress(fmt.Sprintf("%s, %v, run %d of %d: %v", p.Name, length, sum.Runs, cfg.Runs, one))
		}
		all = append(all, sum)
	}
	return all, nil
}

func (s *Stalled) add(one stalled) {
	s.Runs++
	if one.elsewhere > 0 {
		s.Moved++
	}
	s.Stood = max(s.Stood, milliseconds(one.stood))
	s.Waited, s.Lost = max(s.Waited, milliseconds(one.waited)), max(s.Lost, one.lost)
	s.Two = max(s.Two, milliseconds(one.two))
}

// stalled is the result of one pause.
type stalled struct {
	stood, waited, two time.Duration
	lost               int
	// elsewhere is the longest time that a VIP was on a node that did not hold it before, until the
	// end. from is its start, after the node stopped.
	elsewhere, from time.Duration
}

func (s stalled) String() string {
	what := "no VIP moved"
	if s.elsewhere > 0 {
		what = fmt.Sprintf("a VIP moved after %v, split brain for %v once it resumed", round(s.from), round(s.two))
	}
	return fmt.Sprintf("paused for %v: %s; %v %s, %d requests lost", round(s.stood), what, round(s.waited), vrrp.WithoutAnswer, s.lost)
}

// stall pauses a node of a healthy cluster at a phase of the advertisement interval.
func stall(ctx context.Context, s *subject, how Stalls, length time.Duration, phase float64) (out stalled, err error) {
	if err := s.settled(ctx); err != nil {
		return out, err
	}
	r := &run{subject: s, scenario: &Scenario{VIP: api}, vip: s.VIPs(api)[0]}
	defer func() { err = errors.Join(err, r.close()) }()
	if r.holder, err = s.Holder(ctx, r.vip); err != nil {
		return out, err
	}
	if err := r.observe(ctx); err != nil {
		return out, err
	}
	node := r.holder
	if how.Backup {
		node = s.backup(r.holder)
	}
	r.align(ctx, phase)
	if out.stood, err = node.Stall(ctx, length, how.Drop); err != nil {
		return out, err
	}
	began := r.now() - out.stood
	if err := r.awaitSettled(ctx); err != nil {
		return out, err
	}
	seen := r.probe.End()
	out.waited, out.lost = seen.Gap(), seen.Lost()
	timeline, err := r.watch.End()
	out.two = twoAfter(timeline, began+out.stood)
	out.from, out.elsewhere = elsewhere(timeline, began)
	return out, err
}

// backup returns a control-plane node that is not the holder: the one that would win a tie.
func (s *subject) backup(holder *lab.Node) *lab.Node {
	others := slices.DeleteFunc(s.ControlPlane(), func(n *lab.Node) bool { return n == holder })
	return slices.MaxFunc(others, func(a, b *lab.Node) int { return a.Address().Compare(b.Address()) })
}

// awaitSettled waits until clients get answers and every VIP has one holder.
func (r *run) awaitSettled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := r.awaitAnswers(ctx); err != nil {
		return err
	}
	for _, vip := range r.vips() {
		if _, err := r.Holder(ctx, vip); err != nil {
			return err
		}
	}
	return nil
}

// twoAfter returns the longest time, from a time on, in which two nodes held a VIP.
func twoAfter(t watch.Timeline, from time.Duration) (longest time.Duration) {
	for _, o := range t.Overlaps(0) {
		longest = max(longest, o.To-max(o.From, from))
	}
	return longest
}

// elsewhere returns the longest time, from a time on, that a node had a VIP which another one held
// then, and the delay until that started.
func elsewhere(t watch.Timeline, from time.Duration) (after, longest time.Duration) {
	before := map[netip.Addr]string{}
	for _, s := range t.In(watch.Addresses) {
		if s.From <= from && s.To >= from {
			before[s.VIP] = s.Node
		}
	}
	for _, s := range t.In(watch.Addresses) {
		if s.From > from && s.Node != before[s.VIP] && s.To-s.From > longest {
			after, longest = s.From-from, s.To-s.From
		}
	}
	return after, longest
}
