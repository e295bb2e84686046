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
)

// vrrpAnnotation holds what the agent of a node says of its VRRP settings, on its Node.
const vrrpAnnotation = "vipgen.io/vrrp"

const (
	// announceAgain is how long after a failure, or a word that is not seen, it is
	// said again.
	announceAgain = 2 * time.Second
	// announceTimeout bounds one request.
	announceTimeout = 5 * time.Second
	// spreadPerNode is over how long, for each node of the cluster, all of them
	// spread what they say: every word reaches every node.
	spreadPerNode = 5 * time.Millisecond
)

var announceRights = rights{
	`a rule with apiGroups [""], resources [nodes], verbs [patch]`,
	"nothing of vipgen: the Node authorizer lets a node change its own Node; check that it is on",
}

// announcer keeps one annotation of this node as the agent wants it.
type announcer struct {
	client *client
	self   string
	logging.Transitions

	mu     sync.Mutex
	wanted string
	seen   string // as the API has it
	fresh  bool   // an API server vouches for that
	size   int    // of the cluster
	wake   chan struct{}
}

func newAnnouncer(c *client, self string) *announcer {
	return &announcer{client: c, self: self, wake: make(chan struct{}, 1)}
}

func (a *announcer) note(do func()) {
	a.mu.Lock()
	do()
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// due says whether there is something to say, and somebody to say it to.
func (a *announcer) due() bool { return a.fresh && a.wanted != "" && a.wanted != a.seen }

// delay spreads what the nodes of a large cluster say at the same time.
func (a *announcer) delay() time.Duration {
	h := fnv.New32a()
	h.Write([]byte(a.self))
	return time.Duration(h.Sum32()%1000) * spreadPerNode * time.Duration(a.size) / 1000
}

// run says what is wanted while the API has something else, until ctx ends.
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
			a.Warn(a.client.log, err, "the other nodes cannot be told the VRRP settings of this one", "the other nodes are told the VRRP settings of this one again")
			// Until the watch shows it, or in case that it never does.
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

// Announce makes the agents of all nodes know what this one says of its VRRP settings,
// from now on and over changes of the API server: an annotation of this node's
// Node, which is all that a node may write there. Empty says nothing more.
func (w *Watcher) Announce(text string) {
	w.announcer.mu.Lock()
	same := w.announcer.wanted == text
	w.announcer.mu.Unlock()
	if !same {
		w.announcer.note(func() { w.announcer.wanted = text })
	}
}

// look takes in what the API has.
func (a *announcer) look(s *Snapshot) {
	a.note(func() {
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
