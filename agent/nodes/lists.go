package nodes

import (
	"cmp"
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/vipgen/vipgen/api/v1alpha1"
)

// controlPlane selects the Nodes of the control plane, in two lists because selectors
// have no "or". Kubernetes sets the first label from 1.20 on; old OpenShift clusters have
// Nodes with the second one only.
var controlPlane = []string{
	v1alpha1.RoleLabel("control-plane"),
	v1alpha1.RoleLabel(v1alpha1.RoleMaster) + ",!" + v1alpha1.RoleLabel("control-plane"),
}

// nodeLists holds Nodes, by one or more label selectors.
type nodeLists []nodeList

type nodeList struct {
	selector string // of labels; empty for all Nodes
	*store[nodeObject, *record]
}

// newLists returns lists of all Nodes, or of the control plane only.
func newLists(controlPlaneAlone bool, concerns func(old, now *record) bool, changed func(now bool)) (out nodeLists) {
	selectors := []string{""}
	if controlPlaneAlone {
		selectors = controlPlane
	}
	for _, s := range selectors {
		out = append(out, nodeList{s, &store[nodeObject, *record]{
			keep: newRecord, same: (*record).equal, urgent: concerns, changed: changed, items: map[string]*record{},
		}})
	}
	return out
}

// restore starts with the last known state. Each list gets all of it, so that no node is
// missing before the last list has been read.
func (l nodeLists) restore(records []*record) {
	for _, one := range l {
		for _, r := range records {
			one.items[r.Name] = r
		}
	}
}

func (l nodeLists) run(ctx context.Context, w *Watcher) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, one := range l {
		r := &resource[nodeObject]{
			client: w.client, name: "nodes", selectors: metav1.ListOptions{LabelSelector: one.selector},
			refusals: refusals{log: w.log, rights: nodesRights}, reached: one.setReached, identity: true,
		}
		all.Go(func() { r.reflect(ctx, one.store, &nodeObject{}) })
	}
}

// get merges store.get of all lists; each Node is returned once.
func (l nodeLists) get() (items []*record, stale, synced bool) {
	synced = true
	for _, one := range l {
		some, old, ok := one.get()
		items, stale, synced = append(items, some...), stale || old, synced && ok
	}
	byName := func(a, b *record) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(items, byName)
	return slices.CompactFunc(items, func(a, b *record) bool { return a.Name == b.Name }), stale, synced
}
