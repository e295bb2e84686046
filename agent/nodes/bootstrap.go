package nodes

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/vipgen/vipgen/agent/nodelist"
)

// The etcd operator stores the address of the bootstrap host in an annotation of this
// ConfigMap, and removes the annotation when the host is gone.
const (
	endpointsNamespace = "openshift-etcd"
	endpointsName      = "etcd-endpoints"
)

// bootstrapWatch watches the state of the bootstrap host.
type bootstrapWatch struct {
	log   *slog.Logger
	store *store[configMapObject, string] // the annotation
	watch *resource[configMapObject]

	mu     sync.Mutex
	known  nodelist.Bootstrap
	logged string // invalid annotation logged last
}

// newBootstrapWatch returns a watch that starts with a known state. The rights cover one
// object, so the request names it. changed is called after changes.
func newBootstrapWatch(c *client, known nodelist.Bootstrap, changed func(), log *slog.Logger) *bootstrapWatch {
	b := &bootstrapWatch{log: log, known: known}
	b.store = &store[configMapObject, string]{
		keep: func(c *configMapObject) string { return c.Annotations.EtcdBootstrap },
		same: func(a, b string) bool { return a == b },
		changed: func(bool) {
			if b.update() {
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

func (b *bootstrapWatch) current() nodelist.Bootstrap {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

// update evaluates the ConfigMap, and reports whether the state changed. Without a
// ConfigMap the known state stays: a new cluster gets it late, and one that lost it gets
// no bootstrap back.
func (b *bootstrapWatch) update() bool {
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
		b.known.Gone = true // the address stays: the host may still be shutting down
	case err == nil && usable(address):
		b.known = nodelist.Bootstrap{Address: address}
	default: // it exists, at an unknown address
		b.known.Gone, bad = false, texts[0]
	}
	if bad != "" && bad != b.logged {
		b.log.Warn("cannot parse the address of the bootstrap host",
			"configmap", endpointsNamespace+"/"+endpointsName, "annotation", bad)
	}
	b.logged = bad
	if b.known == before {
		return false
	}
	b.log.Info("bootstrap host changed", "address", b.known.Address, "gone", b.known.Gone)
	return true
}
