package nodes

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	// routerNamespace is where the ingress operator runs routers.
	routerNamespace = "openshift-ingress"
	// routerLabel is on every router pod; its value is the IngressController.
	routerLabel = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
)

// Routers says which ingress controllers have router pods on this node (hard case
// 21). It is shared by all who got it; nobody may change it.
type Routers struct {
	// Ready are the names of the ingress controllers, sorted.
	Ready []string
	// Present are the names of those that have any router pod here, also one that
	// starts or ends, sorted.
	Present []string
	// Stale says that no API server vouches for this now.
	Stale bool
}

// Has says whether the ingress controller has a ready router on this node.
func (r Routers) Has(controller string) bool { return slices.Contains(r.Ready, controller) }

// Foreign says whether the routers on this node are of other ingress controllers
// alone: what answers at the routers' port is none of this one's.
func (r Routers) Foreign(controller string) bool {
	return len(r.Present) > 0 && !slices.Contains(r.Present, controller)
}

// routers watches the router pods of one node. A node may read its own pods, and
// only those, so the request names the node.
type routers struct {
	log   *slog.Logger
	store *store[podObject, router]
	watch *resource[podObject]
	feed  feed[Routers]
	mu    sync.Mutex // one publish at a time
}

// router is what is kept of a router pod.
type router struct {
	controller string
	ready      bool
	over       bool // its containers have ended for good
}

func newRouters(c *client, node string, log *slog.Logger) *routers {
	r := &routers{log: log}
	r.store = &store[podObject, router]{
		keep: newRouter, same: func(a, b router) bool { return a == b },
		changed: func(bool) { r.publish() }, items: map[string]router{},
	}
	r.watch = &resource[podObject]{
		client: c, name: "pods", namespace: routerNamespace,
		selectors: metav1.ListOptions{
			LabelSelector: routerLabel,
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
		},
		refusals: refusals{log: log, rights: podsRights}, reached: r.store.setReached,
	}
	return r
}

// newRouter takes from a pod what is kept of it. One that is being deleted may
// still answer, but is on its way out.
func newRouter(p *podObject) router {
	ready := slices.Contains(p.Status.Conditions, podCondition{Type: "Ready", Status: "True"})
	return router{
		controller: p.Labels.get(routerLabel), ready: ready && p.Deleted == nil,
		over: p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded",
	}
}

func (r *routers) run(ctx context.Context) { r.watch.reflect(ctx, r.store, &podObject{}) }

// publish hands on what is known, without delay: there are few pods on a node,
// and a VIP waits for them.
func (r *routers) publish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	pods, stale, synced := r.store.get()
	if !synced {
		return
	}
	now := routersOf(pods, stale)
	old, ok := r.feed.current()
	if ok && old.Stale == now.Stale && slices.Equal(old.Ready, now.Ready) && slices.Equal(old.Present, now.Present) {
		return
	}
	r.feed.publish(now)
	r.log.Info("routers on this node", "ready", some(now.Ready), "present", some(now.Present), "stale", now.Stale)
}

// routersOf says what router pods of a node come to.
func routersOf(pods []router, stale bool) Routers {
	out := Routers{Stale: stale}
	for _, p := range pods {
		if p.ready {
			out.Ready = append(out.Ready, p.controller)
		}
		if !p.over {
			out.Present = append(out.Present, p.controller)
		}
	}
	out.Ready, out.Present = distinct(out.Ready), distinct(out.Present)
	return out
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// Routers returns a channel as Subscribe does, for the ingress controllers with
// a ready router on this node. It takes Options.RouterPods; else nothing comes.
func (w *Watcher) Routers(ctx context.Context) <-chan Routers {
	if w.routers == nil {
		return nil
	}
	return w.routers.feed.subscribe(ctx)
}
