package nodes

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store is the store of a reflector: it keeps the part V of each object of type T, by
// name.
type store[T, V any] struct {
	keep func(*T) V
	same func(a, b V) bool
	// urgent reports whether a change of an item must not be delayed; old is zero for an
	// added item, now for a removed one. A nil urgent delays all changes.
	urgent func(old, now V) bool
	// changed is called without locks after changes of items or staleness. now is true
	// for an urgent change, and for the first content from the API.
	changed func(now bool)

	mu      sync.Mutex
	items   map[string]V
	synced  bool // the items are from the API
	reached bool // the API vouches for them now
}

// Add implements cache.ReflectorStore.
func (s *store[T, V]) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store[T, V]) Update(obj any) error {
	name, v := nameOf(obj), s.keep(obj.(*T))
	s.mu.Lock()
	old, ok := s.items[name]
	changed := !ok || !s.same(old, v)
	if changed {
		s.items[name] = v
	}
	s.mu.Unlock()
	if changed {
		s.changed(s.isUrgent(old, v))
	}
	return nil
}

func (s *store[T, V]) isUrgent(old, now V) bool { return s.urgent != nil && s.urgent(old, now) }

// Delete implements cache.ReflectorStore.
func (s *store[T, V]) Delete(obj any) error {
	name := nameOf(obj)
	s.mu.Lock()
	old, ok := s.items[name]
	delete(s.items, name)
	s.mu.Unlock()
	if ok {
		var none V
		s.changed(s.isUrgent(old, none))
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store[T, V]) Replace(list []any, _ string) error {
	items := make(map[string]V, len(list))
	for _, obj := range list {
		items[nameOf(obj)] = s.keep(obj.(*T))
	}
	s.mu.Lock()
	now := !s.synced
	for name, old := range s.items {
		now = now || s.isUrgent(old, items[name])
	}
	s.items, s.synced = items, true
	s.mu.Unlock()
	s.changed(now)
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store[T, V]) Resync() error { return nil }

func nameOf(obj any) string { return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().GetName() }

// setReached sets whether the API vouches for the items.
func (s *store[T, V]) setReached(reached bool) {
	s.mu.Lock()
	changed := s.reached != reached
	s.reached = reached
	s.mu.Unlock()
	if changed {
		s.changed(!reached) // a list that no server vouches for may be wrong about this node (hard case 51)
	}
}

// get returns the items sorted by name, whether they are stale, and whether they ever
// came from the API.
func (s *store[T, V]) get() (items []V, stale, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.items)) {
		items = append(items, s.items[name])
	}
	return items, !s.synced || !s.reached, s.synced
}
