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

// Options say what lab to start.
type Options struct {
	Place Place
	// Config is the lab; Dir, Record, Log and Progress are filled in.
	Config lab.Config
	// Progress is told what is done now, in a few words.
	Progress func(string)
	// Events gets what happens while it has room.
	Events chan<- Event
}

// Lab is a lab that this process runs.
type Lab struct {
	place   Place
	plan    *lab.Plan
	agent   string // file of vipgen-agent
	cluster *lab.Cluster
	began   time.Time
	watch   *watch
	log     *slog.Logger

	lock    *os.File
	logFile *os.File
	server  net.Listener
	serving sync.WaitGroup
	ctx     context.Context // of what is done on request
	cancel  context.CancelFunc

	doing sync.Mutex // held while something is done to the lab

	events chan<- Event

	mu  sync.Mutex
	cut []string // machines on the other side of a partition
}

// Start builds a lab and lets others control it. When it returns an error, nothing
// is left of the lab. The caller must Close it.
func Start(ctx context.Context, o Options) (l *Lab, err error) {
	l = &Lab{place: o.Place, plan: o.Config.Plan, agent: o.Config.Programs.Agent, began: time.Now(), events: o.Events}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var cleaned bool
	if l.lock, cleaned, err = o.Place.take(); err != nil {
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
	l.watch = newWatch(l.cluster, l.tell)
	return l, l.listen()
}

// Close ends the lab and removes everything that it made. If that fails, what is
// left is recorded, for Place.Down.
func (l *Lab) Close() error {
	l.cancel()
	var errs []error
	if l.server != nil {
		errs = append(errs, l.server.Close())
	}
	l.serving.Wait() // what is being done fails now
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

// AwaitHolders waits until every VIP has a holder, at most for as long as ctx
// does, and returns the VIPs that have none.
func (l *Lab) AwaitHolders(ctx context.Context) (without []string) {
	for {
		without = nil
		for _, v := range l.watch.vips() {
			if len(v.Holders) == 0 {
				without = append(without, v.Address.String())
			}
		}
		if len(without) == 0 || ctx.Err() != nil {
			return without
		}
		pause(ctx, every)
	}
}

// Event is something that happened in the lab.
type Event struct {
	At   time.Time
	Text string
}

// tell tells of an event.
func (l *Lab) tell(format string, args ...any) {
	e := Event{time.Now(), fmt.Sprintf(format, args...)}
	l.log.Info(e.Text)
	select {
	case l.events <- e:
	default:
	}
}

// machines are the names of all machines: nodes, client and site.
func (l *Lab) machines() []string {
	return append(lists.Map(l.cluster.Nodes(), func(n *lab.Node) string { return n.Name }), l.cluster.Client.Name, l.cluster.Site.Name)
}

// node returns a node of the cluster by its name.
func (l *Lab) node(name string) (*lab.Node, error) {
	n, err := l.cluster.Node(name)
	if err == nil {
		return n, nil
	}
	names := l.machines()
	if slices.Contains(names, name) {
		return nil, Mistake("%s is no node of the cluster: it has power and link for as long as the lab is there", name)
	}
	return nil, Mistake("there is no node %q; there is %s", name, strings.Join(names[:len(names)-2], ", "))
}
