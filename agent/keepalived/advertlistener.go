package keepalived

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/migration"
	"github.com/vipgen/vipgen/internal/vrrp/listener"
	"github.com/vipgen/vipgen/templates/keepalived"
)

// advertListener listens for the adverts of peers during a migration.
type advertListener struct {
	log *slog.Logger
	// changed is called after each new advert of interest.
	changed func()

	failing logging.Transitions

	mu       sync.Mutex
	recorder migration.Recorder
	sockets  map[socketKey]context.CancelFunc
}

// socketKey is a link to listen on.
type socketKey struct {
	link string
	ipv6 bool
}

// follow listens for adverts of these instances from these peers, and of no others. With
// none it stops.
func (al *advertListener) follow(pairs []migration.Pair, from []netip.Addr) {
	al.mu.Lock()
	defer al.mu.Unlock()
	al.recorder.Follow(pairs, from)
	wanted := map[socketKey]bool{}
	for _, p := range pairs {
		wanted[socketKey{p.New.Interface, p.New.VIP.Addr().Is6()}] = true
	}
	for key, stop := range al.sockets {
		if !wanted[key] {
			stop()
			delete(al.sockets, key)
		}
	}
	var errs []error
	for key := range wanted {
		if al.sockets[key] != nil {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		if err := al.listen(ctx, key); err != nil {
			stop()
			errs = append(errs, err)
			continue
		}
		if al.sockets == nil {
			al.sockets = map[socketKey]context.CancelFunc{}
		}
		al.sockets[key] = stop
	}
	al.failing.Warn(al.log, errors.Join(errs...), "cannot receive VRRP settings of other nodes", "VRRP settings of other nodes received again")
}

func (al *advertListener) instances() (out []keepalived.Instance) {
	al.mu.Lock()
	defer al.mu.Unlock()
	for _, p := range al.recorder.Pairs() {
		out = append(out, p.Old, p.New)
	}
	return out
}

func (al *advertListener) received(now time.Time) migration.Adverts {
	al.mu.Lock()
	defer al.mu.Unlock()
	return al.recorder.Adverts(now)
}

// staleTime is the age at which a received advert is ignored: one that arrived while the
// agent was stopped carries the settings of that time.
const staleTime = time.Second

// listen receives all adverts on a link until ctx ends.
func (al *advertListener) listen(ctx context.Context, key socketKey) error {
	l, err := listener.OnInterface(key.link, key.ipv6)
	if err != nil {
		return err
	}
	go func() {
		defer l.Close()
		for {
			a, err := l.Receive(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil: // for example, the link went down
				select {
				case <-ctx.Done():
					return
				case <-time.After(100 * time.Millisecond):
				}
			case a.Waited <= staleTime:
				al.record(key, a)
			}
		}
	}()
	return nil
}

func (al *advertListener) record(key socketKey, a listener.Received) {
	al.mu.Lock()
	news := al.recorder.Record(key.link, a, time.Now())
	al.mu.Unlock()
	if news {
		al.changed()
	}
}
