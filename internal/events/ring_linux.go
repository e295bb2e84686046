package events

import (
	"bytes"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vipgen/vipgen/internal/rawio"
	"github.com/vipgen/vipgen/internal/ticker"
)

// Ring writes a node's record. It never delays the agent: Record does not wait for the disk.
// Events that cannot be written, as to a full or read-only one, are kept in memory and written
// later; beyond a limit they are counted. The zero value, and nil, record nothing.
type Ring struct {
	node, boot, job string
	on              onTime
	wake            chan struct{} // signals a new event
	stop, done      chan struct{}

	mu       sync.Mutex
	closed   bool
	recorded backlog

	// Owned by the goroutine that writes.
	file   file
	limit  limiter
	behind backlog // not yet written
	failed bool    // the last write
	// failing is set while the failure is logged.
	failing bool
	log     *slog.Logger
}

const (
	// maxBacklog is many times the events of a node at one moment.
	maxBacklog = 1024
	// flushInterval bounds how often lines are synced, as etcd shares the disk, and is the interval
	// of retries.
	flushInterval = time.Second
	// closeTime bounds how long Close waits for the disk.
	closeTime = time.Second
)

// backlog holds events that wait for the disk, the newest where there are too many.
type backlog struct {
	list   []Event
	missed uint64
}

func (b *backlog) add(list ...Event) {
	b.list = append(b.list, list...)
	if beyond := len(b.list) - maxBacklog; beyond > 0 {
		for _, e := range b.list[:beyond] {
			b.missed += 1 + e.LeftOut + e.Missed
		}
		b.list = append([]Event(nil), b.list[beyond:]...)
	}
}

// drain empties it. The first event has the number of those missing before it.
func (b *backlog) drain() (list []Event) {
	if len(b.list) > 0 {
		list, b.list = b.list, nil
		list[0].Missed += b.missed
		b.missed = 0
	}
	return list
}

// Open continues the record of a job in a directory, of a node; job is empty for keepalived. It
// never fails. The caller must Close it.
func Open(dir, node, job string, log *slog.Logger) *Ring {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	r := &Ring{
		node: truncate(node), job: job, boot: truncate(string(bytes.TrimSpace(boot))), log: log, file: file{dir: dir},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	r.on.begin(sinceBoot())
	go r.tick()
	go func() {
		defer close(r.done)
		r.run()
	}()
	return r
}

// Record records an event with the current time. It does not wait.
func (r *Ring) Record(e Event) {
	if r == nil || r.wake == nil {
		return
	}
	e.bound()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	up := sinceBoot() // in the order in which events are recorded
	on, late := r.on.at(up)
	e.Node, e.Job, e.Boot, e.Up, e.Time = r.node, r.job, r.boot, MillisOf(up), time.Now().UTC().Round(time.Microsecond)
	e.OnTime, e.Delay = MillisOf(on), MillisOf(late)
	r.recorded.add(e)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// tick records a delay of the agent.
func (r *Ring) tick() {
	tick := ticker.New(tickInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			return
		case <-tick.C:
			tick.Next()
		}
		if late := r.on.tick(sinceBoot()); late > 0 {
			r.Record(Event{Kind: Late, Name: "agent", For: MillisOf(late)})
		}
	}
}

// Close writes the recorded events, and returns when that is done, or after a second.
func (r *Ring) Close() {
	if r == nil || r.wake == nil {
		return
	}
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(closeTime):
	}
}

// sinceBoot returns the time since the kernel booted, including suspend.
func sinceBoot() time.Duration { return rawio.Clock(unix.CLOCK_BOOTTIME) }

// run writes until the ring is closed.
func (r *Ring) run() {
	r.file.begin()
	r.writeBacklog()
	tick := ticker.New(flushInterval)
	defer tick.Stop()
	for {
		select {
		case <-r.stop:
			r.collect()
			r.behind.add(r.limit.flush()...)
			r.writeBacklog()
			r.file.sync()
			return
		case <-r.wake:
			r.collect()
		case now := <-tick.C:
			tick.Next()
			r.failed = false
			r.behind.add(r.limit.due(now)...)
			r.file.sync()
		}
		if len(r.behind.list) > 0 && !r.failed {
			r.writeBacklog()
		}
	}
}

// collect moves recorded events to the backlog, up to the limit.
func (r *Ring) collect() {
	r.mu.Lock()
	list := r.recorded.drain()
	r.mu.Unlock()
	for _, e := range list {
		r.behind.add(r.limit.admit(e, time.Now())...)
	}
}

// writeBacklog writes the backlog, and logs the begin and the end of failures.
func (r *Ring) writeBacklog() {
	list := r.behind.drain()
	n, err := r.file.write(list)
	r.behind.add(list[n:]...)
	r.failed = err != nil
	switch {
	case err == nil && r.failing:
		r.failing = false
		r.log.Info("events are recorded on disk again")
	case err != nil && !r.failing:
		r.failing = true
		r.log.Warn("events are not recorded on disk for 'vipgen doctor'; they are kept in memory", "error", err.Error())
	}
}
