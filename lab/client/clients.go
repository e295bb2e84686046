package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/connrotation"
	"k8s.io/klog/v2"

	"github.com/vipgen/vipgen/internal/testbed/kubeapi"
)

// Machine is a machine that clients run on, such as a namespace of the lab.
type Machine interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Place is a group of machines.
type Place struct {
	Name     string // such as "worker"
	Machines []Machine
}

// Config configures the clients.
type Config struct {
	// API signs their credentials and creates the events that they watch.
	API kubeapi.Plane
	// Domain is the cluster's domain; the clients verify certificates for its api-int name.
	Domain string
	// VIP is the address and port that all clients connect to.
	VIP netip.AddrPort
	// Places are the places of the clients. A place without machines has none.
	Places []Place
	// Each is the number of clients of each kind at each place.
	Each int
}

// Kinds of clients, in the order of End's results for a place.
const (
	Watch     = "watch"
	Election  = "election"
	Heartbeat = "heartbeat"
)

var kinds = []struct {
	name  string
	start func(context.Context, *instance) error
}{{Watch, startWatch}, {Election, startElection}, {Heartbeat, startHeartbeat}}

// Result is the result of the clients of one kind at one place.
type Result struct {
	Kind, Place string
	Clients     int
	// Longest is the longest delay of any of them: of an event, of a renewal of a leader election,
	// or of a heartbeat, since it was due.
	Longest time.Duration
	// Lost is the number of lost elections.
	Lost int
	// Stuck is the number of clients that had not recovered when Await ended.
	Stuck int
}

// Clients are running clients.
type Clients struct {
	*access
	api    kubeapi.Plane
	groups []*group
	cancel context.CancelFunc
	done   sync.WaitGroup

	events   int // number of events so far
	stop     func()
	awaiting time.Time // Await waits for deadlines after this time
}

// group holds the clients of one kind at one place.
type group struct {
	kind, place string
	all         []*waits
}

// instance is a client.
type instance struct {
	*Clients
	from  Machine
	name  string // of its Lease
	waits *waits
}

// run runs f until the client's context ends.
func (c *instance) run(dialer *connrotation.Dialer, f func()) {
	c.done.Go(func() {
		f()
		dialer.CloseAll()
	})
}

// Start starts clients and returns when all of them work. The caller must End them.
func Start(ctx context.Context, cfg Config) (c *Clients, err error) {
	c = &Clients{api: cfg.API, stop: func() {}}
	if c.access, err = newAccess(&cfg); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	// Client-go would log each failure, which these clients are there to measure.
	running, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	c.cancel = cancel
	if err = c.startAll(running, &cfg); err == nil {
		err = c.Touch(ctx)
	}
	if err != nil {
		c.End()
		return nil, fmt.Errorf("starting clients: %w", err)
	}
	return c, nil
}

func (c *Clients) startAll(ctx context.Context, cfg *Config) error {
	for _, p := range cfg.Places {
		if len(p.Machines) == 0 {
			continue
		}
		for _, k := range kinds {
			g := &group{kind: k.name, place: p.Name}
			c.groups = append(c.groups, g)
			for i := range cfg.Each {
				w := &waits{}
				g.all = append(g.all, w)
				name := strings.ReplaceAll(fmt.Sprintf("%s-%s-%d", k.name, p.Name, i), " ", "-")
				if err := k.start(ctx, &instance{c, p.Machines[i%len(p.Machines)], name, w}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Touch creates an event and returns when all clients work: each watch has received the event, each
// lease was renewed. A measurement that starts now includes a watch at the start of its idle time,
// the worst case.
func (c *Clients) Touch(ctx context.Context) error {
	c.awaiting = time.Now()
	if err := c.event(ctx); err != nil {
		return err
	}
	return c.await(ctx)
}

// Begin starts the measurement: from now on delays count, and events are created all the time.
func (c *Clients) Begin() {
	for _, g := range c.groups {
		for _, w := range g.all {
			w.begin()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_ = c.event(ctx) // the next one retries
			if !sleep(ctx, eventEvery) {
				return
			}
		}
	}()
	c.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
}

// Await returns when every client has worked after this call. After an error, End reports the
// others as stuck.
func (c *Clients) Await(ctx context.Context) error {
	c.awaiting = time.Now()
	return c.await(ctx)
}

func (c *Clients) await(ctx context.Context) error {
	for {
		var stuck []string
		for _, g := range c.groups {
			if n := g.stuck(c.awaiting); n > 0 {
				stuck = append(stuck, fmt.Sprintf("%d of %d: %s, %s", n, len(g.all), g.kind, g.place))
			}
		}
		if len(stuck) == 0 {
			return nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("waiting for clients to work (%s): %w", strings.Join(stuck, "; "), ctx.Err())
		}
	}
}

// stuck returns the number of clients that have not worked since a time.
func (g *group) stuck(since time.Time) (n int) {
	for _, w := range g.all {
		if !w.since(since) {
			n++
		}
	}
	return n
}

// End stops all clients and returns their results since Begin.
func (c *Clients) End() (out []Result) {
	c.stop()
	for _, g := range c.groups {
		r := Result{Kind: g.kind, Place: g.place, Clients: len(g.all), Stuck: g.stuck(c.awaiting)}
		for _, w := range g.all {
			longest, lost := w.result()
			r.Longest, r.Lost = max(r.Longest, longest), r.Lost+lost
		}
		out = append(out, r)
	}
	c.cancel()
	c.done.Wait()
	return out
}

// Events are changes of one object.
const (
	namespace  = "lab-clients"
	eventsName = "events"
	eventKey   = "event"
	eventsPath = "/api/v1/namespaces/" + namespace + "/configmaps"
	eventEvery = 100 * time.Millisecond
	// eventTimeout is the time limit of an API server for one event.
	eventTimeout = 2 * time.Second
)

// prepare creates the object of the events anew.
func (c *Clients) prepare(ctx context.Context) error {
	but := func(err, expected error) error {
		if errors.Is(err, expected) {
			return nil
		}
		return err
	}
	return errors.Join(
		but(c.api.Create(ctx, "/api/v1/namespaces", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")), kubeapi.ErrExists),
		but(c.api.Delete(ctx, eventsPath+"/"+eventsName), kubeapi.ErrAbsent),
		c.api.Create(ctx, eventsPath, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+eventsName+"}}")))
}

// event creates an event, without the VIP. If that fails, the next call retries.
func (c *Clients) event(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	now := time.Now()
	for _, g := range c.groups {
		if g.kind == Watch {
			for _, w := range g.all {
				w.expect(c.events+1, now)
			}
		}
	}
	err := c.api.Patch(ctx, eventsPath+"/"+eventsName, fmt.Appendf(nil, `{"data": {%q: "%d"}}`, eventKey, c.events+1))
	if err == nil {
		c.events++
	}
	return err
}
