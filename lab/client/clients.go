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

// Machine is one that clients are on, such as a namespace of the lab.
type Machine interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Place is a number of machines.
type Place struct {
	Name     string // such as "worker"
	Machines []Machine
}

// Config says which clients there are.
type Config struct {
	// API makes their credentials, and the events that watches are told.
	API kubeapi.Plane
	// Domain is the cluster's; the clients verify certificates for api-int of it.
	Domain string
	// VIP is the address and port that all clients connect to.
	VIP netip.AddrPort
	// Places are where they are. One without machines has none.
	Places []Place
	// Each is how many there are of each kind at each place.
	Each int
}

// The kinds of clients, in the order of what End returns for a place.
const (
	Watch     = "watch"
	Election  = "election"
	Heartbeat = "heartbeat"
)

var kinds = []struct {
	name  string
	start func(context.Context, *starting) error
}{{Watch, startWatch}, {Election, startElection}, {Heartbeat, startHeartbeat}}

// Result is what became of the clients of one kind at one place.
type Result struct {
	Kind, Place string
	Clients     int
	// Longest is the longest time that any of them waited: for an event, for a renewal
	// of its leader election, or for a heartbeat, from when it was due.
	Longest time.Duration
	// Lost counts the elections that were lost.
	Lost int
	// Stuck counts the clients that did not work again when Await ended.
	Stuck int
}

// Clients are clients that run.
type Clients struct {
	*access
	api    kubeapi.Plane
	groups []*group
	cancel context.CancelFunc
	done   sync.WaitGroup

	events   int // made
	stop     func()
	awaiting time.Time // what Await waits for is due after that
}

// group is the clients of one kind at one place.
type group struct {
	kind, place string
	all         []*waits
}

// starting is a client that is started.
type starting struct {
	*Clients
	from  Machine
	name  string // of its lease
	waits *waits
}

// run has a client run until ctx, with which it was started, ends.
func (c *starting) run(dialer *connrotation.Dialer, f func()) {
	c.done.Go(func() {
		f()
		dialer.CloseAll()
	})
}

// Start starts clients, and returns when all of them work. The caller must End them.
func Start(ctx context.Context, cfg Config) (c *Clients, err error) {
	c = &Clients{api: cfg.API, stop: func() {}}
	if c.access, err = newAccess(&cfg); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	// Client-go tells of each failure, which is what these clients are for.
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
				if err := k.start(ctx, &starting{c, p.Machines[i%len(p.Machines)], name, w}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Touch makes an event, and returns when all clients work: each watch has the event,
// each lease was renewed. What is measured from here on is the wait of a watch that has
// just been told something, which is the longest.
func (c *Clients) Touch(ctx context.Context) error {
	c.awaiting = time.Now()
	if err := c.event(ctx); err != nil {
		return err
	}
	return c.await(ctx)
}

// Begin says that something happens now. From here on waits count, and events are made
// all the time.
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
			_ = c.event(ctx) // tried again
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

// Await returns when every client has worked after this call. After an error, End says
// which have not.
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

// stuck is how many have not worked after a moment.
func (g *group) stuck(since time.Time) (n int) {
	for _, w := range g.all {
		if !w.since(since) {
			n++
		}
	}
	return n
}

// End ends all clients, and says what became of them since Begin.
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
	// eventTimeout is how long an API server may take for one.
	eventTimeout = 2 * time.Second
)

// prepare makes the object that events change anew.
func (c *Clients) prepare(ctx context.Context) error {
	there := func(err error, status string) error {
		if err != nil && strings.Contains(err.Error(), ": "+status+" ") {
			return nil
		}
		return err
	}
	return errors.Join(
		there(c.api.Create(ctx, "/api/v1/namespaces", []byte("{apiVersion: v1, kind: Namespace, metadata: {name: "+namespace+"}}")), "409"),
		there(c.api.Delete(ctx, eventsPath+"/"+eventsName), "404"),
		c.api.Create(ctx, eventsPath, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: "+eventsName+"}}")))
}

// event makes an event, past the VIP. One that could not be made is made by the next
// call.
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
