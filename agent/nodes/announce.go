package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/vipgen/vipgen/agent/logging"
	"github.com/vipgen/vipgen/agent/nodelist"
)

// vrrpAnnotation is the annotation on a Node in which its agent announces its VRRP
// settings.
const vrrpAnnotation = "vipgen.io/vrrp"

const (
	// announceAgain is the delay before an announcement is repeated that failed or is not
	// seen.
	announceAgain = 2 * time.Second
	// announceTimeout bounds one request.
	announceTimeout = 5 * time.Second
	// spreadPerNode is the time, per node of the cluster, over which announcements are
	// spread: each one reaches every node.
	spreadPerNode = 5 * time.Millisecond
)

var announceRights = rights{
	`a rule with apiGroups [""], resources [nodes], verbs [patch]`,
	"nothing of vipgen: the Node authorizer lets a node change its own Node; check that it is on",
}

// announcer writes one annotation of this node.
type announcer struct {
	client *client
	self   string
	logging.Transitions

	mu     sync.Mutex
	wanted string
	seen   string // in the API
	fresh  bool   // an API server vouches for seen
	size   int    // of the cluster
	wake   chan struct{}
}

func newAnnouncer(c *client, self string) *announcer {
	return &announcer{client: c, self: self, wake: make(chan struct{}, 1)}
}

func (a *announcer) update(do func()) {
	a.mu.Lock()
	do()
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// due reports whether an announcement is pending and an API server reachable.
func (a *announcer) due() bool { return a.fresh && a.wanted != "" && a.wanted != a.seen }

// delay spreads the simultaneous announcements of a large cluster.
func (a *announcer) delay() time.Duration {
	h := fnv.New32a()
	h.Write([]byte(a.self))
	return time.Duration(h.Sum32()%1000) * spreadPerNode * time.Duration(a.size) / 1000
}

// run writes the wanted announcement while the API has another one, until ctx ends.
func (a *announcer) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	waiting := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			a.mu.Lock()
			due, wait := a.due(), a.delay()
			a.mu.Unlock()
			if due && !waiting {
				waiting = true
				timer.Reset(wait)
			}
		case <-timer.C:
			waiting = false
			a.mu.Lock()
			text, due := a.wanted, a.due()
			a.mu.Unlock()
			if !due {
				continue
			}
			err := a.patch(ctx, text)
			if ctx.Err() != nil {
				return
			}
			if apierrors.IsForbidden(err) {
				err = fmt.Errorf("%w; missing: %s; apply: %s", err, announceRights.rule, announceRights.remedy)
			}
			a.Warn(a.client.log, err, "cannot announce the VRRP settings of this node", "VRRP settings of this node announced again")
			// Repeated until the watch shows the announcement.
			waiting = true
			timer.Reset(announceAgain)
		}
	}
}

func (a *announcer) patch(ctx context.Context, text string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{vrrpAnnotation: text}}})
	if err != nil {
		return err
	}
	return a.client.try(ctx, func(c *rest.RESTClient, _ string) error {
		ctx, cancel := context.WithTimeout(ctx, announceTimeout)
		defer cancel()
		return c.Patch(types.MergePatchType).Resource("nodes").Name(a.self).MaxRetries(0).Body(body).Do(ctx).Error()
	})
}

// Announce publishes the VRRP settings of this node to the agents of all nodes, in an
// annotation of this node's Node, the only object that a node may change. An empty text
// announces nothing more.
func (w *Watcher) Announce(text string) {
	w.announcer.mu.Lock()
	same := w.announcer.wanted == text
	w.announcer.mu.Unlock()
	if !same {
		w.announcer.update(func() { w.announcer.wanted = text })
	}
}

// observe takes the announcement in the API from a snapshot.
func (a *announcer) observe(s *nodelist.Snapshot) {
	a.update(func() {
		if a.fresh = !s.Stale; s.Stale {
			return
		}
		a.seen, a.size = "", len(s.Updates)
		for _, u := range s.Updates {
			if u.Name == a.self {
				a.seen = u.VRRP
			}
		}
	})
}
