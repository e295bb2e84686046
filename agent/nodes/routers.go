package nodes

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/vipgen/vipgen/agent/nodelist"
)

const (
	// routerNamespace is where the ingress operator runs routers.
	routerNamespace = "openshift-ingress"
	// routerLabel is on every router pod; its value is the IngressController.
	routerLabel = "ingresscontroller.operator.openshift.io/deployment-ingresscontroller"
)

// routers watches the router pods of this node. A node may read only its own pods, so the
// request names the node.
type routers struct {
	log   *slog.Logger
	store *store[podObject, router]
	watch *resource[podObject]
	feed  feed[nodelist.Routers]
	mu    sync.Mutex // one publish at a time
}

// router is the part of a router pod that is kept.
type router struct {
	controller string
	ready      bool
	over       bool // its containers have terminated
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

// newRouter returns the router of a pod. One that is being deleted may still answer, but
// is about to end.
func newRouter(p *podObject) router {
	ready := slices.Contains(p.Status.Conditions, podCondition{Type: "Ready", Status: "True"})
	return router{
		controller: p.Labels.get(routerLabel), ready: ready && p.Deleted == nil,
		over: p.Status.Phase == "Failed" || p.Status.Phase == "Succeeded",
	}
}

func (r *routers) run(ctx context.Context) { r.watch.reflect(ctx, r.store, &podObject{}) }

// publish publishes changes without delay: a node has few router pods, and a VIP waits
// for them.
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
	r.log.Info("routers changed", "ready", summarize(now.Ready), "present", summarize(now.Present), "stale", now.Stale)
}

// routersOf aggregates the router pods of a node.
func routersOf(pods []router, stale bool) nodelist.Routers {
	out := nodelist.Routers{Stale: stale}
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

// Routers returns a channel like Subscribe's for the ingress controllers with a ready
// router on this node. Without Options.RouterPods it returns nil.
func (w *Watcher) Routers(ctx context.Context) <-chan nodelist.Routers {
	if w.routers == nil {
		return nil
	}
	return w.routers.feed.subscribe(ctx)
}
