package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vipgen/vipgen/internal/lists"
	"github.com/vipgen/vipgen/lab"
)

// Options configures a lab.
type Options struct {
	Place Place
	// Config configures the lab itself; Start fills in Dir, Record, Log and Progress.
	Config lab.Config
	// Progress is called with a short description of each step.
	Progress func(string)
	// Events receives the lab's events; those that do not fit are dropped.
	Events chan<- Event
}

// Lab is a lab that runs in this process.
type Lab struct {
	place   Place
	plan    *lab.Plan
	agent   string // file of vipgen-agent
	cluster *lab.Cluster
	routers *lab.Routers // nil unless they know the VIPs by BGP
	began   time.Time
	watch   *watch
	log     *slog.Logger

	lock    *os.File
	logFile *os.File
	server  net.Listener
	serving sync.WaitGroup
	ctx     context.Context // of requests
	cancel  context.CancelFunc

	doing sync.Mutex // serializes changes of the lab

	events chan<- Event

	mu  sync.Mutex
	cut []string // machines on the other side of a partition
}

// Start builds a lab and accepts requests for it. If it returns an error, nothing of the lab is
// left. The caller must Close it.
func Start(ctx context.Context, o Options) (l *Lab, err error) {
	l = &Lab{place: o.Place, plan: o.Config.Plan, agent: o.Config.Programs.Agent, began: time.Now(), events: o.Events}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var cleaned bool
	if l.lock, cleaned, err = o.Place.acquire(); err != nil {
		l.cancel()
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
			l = nil
		}
	}()
	if cleaned {
		o.Progress("removed what an earlier lab of that name had left")
	}
	made, err := newRecord()
	if err == nil {
		err = made.write(o.Place.dir())
	}
	if err != nil {
		return l, err
	}
	if l.logFile, err = os.OpenFile(o.Place.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return l, err
	}
	l.log = slog.New(slog.NewTextHandler(l.logFile, nil))
	cfg := o.Config
	cfg.Dir, cfg.Log, cfg.Progress = filepath.Join(o.Place.dir(), "cluster"), l.log, o.Progress
	cfg.Record = func(namespace string) error { return made.add(o.Place.dir(), namespace) }
	if err := os.Mkdir(cfg.Dir, 0o700); err != nil {
		return l, err
	}
	if l.cluster, err = lab.New(ctx, cfg); err != nil {
		return l, err
	}
	if l.cluster.Spec().Routed() {
		o.Progress("routers of the racks")
		if l.routers, err = l.cluster.AddRouters(ctx); err != nil {
			return l, err
		}
	}
	l.watch = newWatch(l.cluster, l.routers, l.event)
	return l, l.listen()
}

// Close ends the lab and removes everything that it made. If that fails, the record keeps what is
// left, for Place.Down.
func (l *Lab) Close() error {
	l.cancel()
	var errs []error
	if l.server != nil {
		errs = append(errs, l.server.Close())
	}
	l.serving.Wait() // running requests fail now
	if l.watch != nil {
		l.watch.close()
	}
	if l.cluster != nil {
		errs = append(errs, l.cluster.Close())
	}
	if l.logFile != nil {
		errs = append(errs, l.logFile.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return errors.Join(fmt.Errorf("ending the lab %s: %w", l.place.Name, err), l.lock.Close())
	}
	return errors.Join(l.place.remove(), l.lock.Close())
}

// AwaitHolders waits until every VIP has a holder, or routers send its packets to all nodes that serve it,
// or ctx ends. It returns the other VIPs.
func (l *Lab) AwaitHolders(ctx context.Context) (without []string) {
	for {
		without = nil
		for _, v := range l.watch.vips() {
			if len(v.Holders) == 0 || v.Routed && len(v.Holders) < l.servers(v.Group) {
				without = append(without, v.Address.String())
			}
		}
		if len(without) == 0 || ctx.Err() != nil {
			return without
		}
		pause(ctx, every)
	}
}

// servers returns the number of nodes that serve the VIPs of a group when all are healthy.
func (l *Lab) servers(group string) (n int) {
	for _, g := range l.cluster.Spec().Groups {
		if g.Name == group {
			n += len(l.cluster.Serving(&g))
		}
	}
	return n
}

// Event is a logged change in the lab.
type Event struct {
	At   time.Time
	Text string
}

// event logs an event and sends it to Options.Events.
func (l *Lab) event(format string, args ...any) {
	e := Event{time.Now(), fmt.Sprintf(format, args...)}
	l.log.Info(e.Text)
	select {
	case l.events <- e:
	default:
	}
}

// machines returns the names of all machines: nodes, client, site and routers.
func (l *Lab) machines() []string {
	names := append(lists.Map(l.cluster.Nodes(), func(n *lab.Node) string { return n.Name }), l.cluster.Client.Name, l.cluster.Site.Name)
	return append(names, lists.Map(l.routers.All(), func(r *lab.Router) string { return r.Name })...)
}

// node returns the node with a name.
func (l *Lab) node(name string) (*lab.Node, error) {
	n, err := l.cluster.Node(name)
	if err == nil {
		return n, nil
	}
	names := l.machines()
	if slices.Contains(names, name) {
		return nil, Mistake("%s is not a node of the cluster: it has power and link as long as the lab exists", name)
	}
	return nil, Mistake("there is no node %q; there is %s", name, strings.Join(names[:len(l.cluster.Nodes())], ", "))
}
