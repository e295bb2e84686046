package nodes

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// store is where a reflector puts what it reads: of each object of type T the
// part V, by name.
type store[T, V any] struct {
	keep func(*T) V
	same func(a, b V) bool
	// changed is called, without locks held, when the content or stale changed.
	// first says that this is the first content from the API.
	changed func(first bool)

	mu      sync.Mutex
	items   map[string]V
	synced  bool // the items are from the API
	reached bool // the API vouches for them now
}

// Add is part of cache.ReflectorStore.
func (s *store[T, V]) Add(obj any) error { return s.Update(obj) }

// Update is part of cache.ReflectorStore.
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
		s.changed(false)
	}
	return nil
}

// Delete is part of cache.ReflectorStore.
func (s *store[T, V]) Delete(obj any) error {
	name := nameOf(obj)
	s.mu.Lock()
	_, ok := s.items[name]
	delete(s.items, name)
	s.mu.Unlock()
	if ok {
		s.changed(false)
	}
	return nil
}

// Replace is part of cache.ReflectorStore.
func (s *store[T, V]) Replace(list []any, _ string) error {
	items := make(map[string]V, len(list))
	for _, obj := range list {
		items[nameOf(obj)] = s.keep(obj.(*T))
	}
	s.mu.Lock()
	first := !s.synced
	s.items, s.synced = items, true
	s.mu.Unlock()
	s.changed(first)
	return nil
}

// Resync is part of cache.ReflectorStore.
func (s *store[T, V]) Resync() error { return nil }

func nameOf(obj any) string { return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().GetName() }

// setReached notes whether the API vouches for the items.
func (s *store[T, V]) setReached(reached bool) {
	s.mu.Lock()
	changed := s.reached != reached
	s.reached = reached
	s.mu.Unlock()
	if changed {
		s.changed(false)
	}
}

// get returns the items sorted by name, whether they are stale, and whether they
// ever came from the API.
func (s *store[T, V]) get() (items []V, stale, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.items))
	for name := range s.items {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	for _, name := range names {
		items = append(items, s.items[name])
	}
	return items, !s.synced || !s.reached, s.synced
}
