package nodes

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

// The etcd operator says in an annotation of this ConfigMap where the host that
// bootstraps the cluster is, and removes the annotation when it is gone.
const (
	endpointsNamespace = "openshift-etcd"
	endpointsName      = "etcd-endpoints"
)

// Bootstrap is what is known of the host that bootstraps the cluster; nothing in
// the zero value.
type Bootstrap struct {
	// Address is where it is, or was.
	Address netip.Addr `json:"address,omitzero"`
	// Gone says that the cluster does without it by now.
	Gone bool `json:"gone,omitempty"`
}

// bootstrapWatch finds out about it.
type bootstrapWatch struct {
	log   *slog.Logger
	store *store[configMapObject, string] // the annotation
	watch *resource[configMapObject]

	mu    sync.Mutex
	known Bootstrap
	bad   string // last said about the annotation
}

// newBootstrapWatch goes on from what is known. The rights are for one object, so
// the request names it. changed is called after something did.
func newBootstrapWatch(c *client, known Bootstrap, changed func(), log *slog.Logger) *bootstrapWatch {
	b := &bootstrapWatch{log: log, known: known}
	b.store = &store[configMapObject, string]{
		keep: func(c *configMapObject) string { return c.Annotations.EtcdBootstrap },
		same: func(a, b string) bool { return a == b },
		changed: func(bool) {
			if b.look() {
				changed()
			}
		},
		items: map[string]string{},
	}
	b.watch = &resource[configMapObject]{
		client: c, name: "configmaps", namespace: endpointsNamespace,
		selectors: metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("metadata.name", endpointsName).String(),
		},
		refusals: refusals{log: log, rights: endpointsRights}, reached: b.store.setReached,
	}
	return b
}

func (b *bootstrapWatch) run(ctx context.Context) { b.watch.reflect(ctx, b.store, &configMapObject{}) }

func (b *bootstrapWatch) current() Bootstrap {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

// look takes in what the ConfigMap says, and tells whether that is news. While
// there is no ConfigMap, what was known stands: a cluster that is being installed
// gets it late, and one that lost it has no bootstrap again for that.
func (b *bootstrapWatch) look() bool {
	texts, _, _ := b.store.get()
	if len(texts) == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before, bad := b.known, ""
	address, err := netip.ParseAddr(texts[0])
	switch {
	case texts[0] == "":
		b.known.Gone = true // where it was, it may still be on its way out
	case err == nil && usable(address):
		b.known = Bootstrap{Address: address}
	default: // there is one, wherever it is
		b.known.Gone, bad = false, texts[0]
	}
	if bad != "" && bad != b.bad {
		b.log.Warn("where the bootstrap host is cannot be read",
			"configmap", endpointsNamespace+"/"+endpointsName, "annotation", bad)
	}
	b.bad = bad
	if b.known == before {
		return false
	}
	b.log.Info("bootstrap host", "address", b.known.Address, "gone", b.known.Gone)
	return true
}
