package kubeapi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
)

// history is the number of changes kept for watches. A watch that is further behind must list
// again.
const history = 4096

// namespaceLabel is on every namespace.
const namespaceLabel = "kubernetes.io/metadata.name"

// object is an immutable object of the store: a change makes another one.
type object struct {
	*unstructured.Unstructured
	json []byte
}

type event struct {
	kind     watch.EventType
	resource *resource
	revision int
	now      object // the last state of a deleted one
	before   object // not of a new one
}

// store holds the objects of a cluster, and its latest changes.
type store struct {
	history int

	mu       sync.Mutex
	revision int // of the last change; the first is 1
	objects  map[*resource]map[string]object
	events   []event
	changed  chan struct{} // closed at the next change
}

func newStore(history int) *store {
	return &store{history: history, revision: 1, objects: map[*resource]map[string]object{}, changed: make(chan struct{})}
}

func key(namespace, name string) string { return namespace + "/" + name }

func (s *store) get(p objectPath) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[p.resource][key(p.namespace, p.name)]
	if !ok {
		return o, apierrors.NewNotFound(p.GroupResource(), p.name)
	}
	return o, nil
}

// list returns the objects of a selection, sorted by namespace and name, and the current
// revision.
func (s *store) list(sel selection) ([]object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.objects[sel.resource]
	var out []object
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if sel.has(all[k]) {
			out = append(out, all[k])
		}
	}
	return out, s.revision
}

func (s *store) create(p objectPath, o *unstructured.Unstructured) (object, error) {
	if o.GetKind() != p.kind || o.GroupVersionKind().GroupVersion() != p.GroupVersion() {
		return object{}, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s",
			o.GetKind(), o.GetAPIVersion(), p.kind))
	}
	if ns := o.GetNamespace(); ns != "" && ns != p.namespace {
		return object{}, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if o.GetName() == "" {
		return object{}, apierrors.NewBadRequest("the object has no name")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.namespaced {
		o.SetNamespace(p.namespace)
		spaces := findResource(core.WithResource("namespaces"))
		if _, ok := s.objects[spaces][key("", p.namespace)]; !ok {
			return object{}, apierrors.NewNotFound(spaces.GroupResource(), p.namespace)
		}
	}
	if _, ok := s.objects[p.resource][key(p.namespace, o.GetName())]; ok {
		return object{}, apierrors.NewAlreadyExists(p.GroupResource(), o.GetName())
	}
	if p.kind == "Namespace" {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[namespaceLabel] = o.GetName()
		o.SetLabels(labels)
	}
	o.SetUID(uuid.NewUUID())
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	return s.put(p.resource, watch.Added, o, object{})
}

// patch merges a patch into an object: into its status alone, or into all else if the status is
// a subresource. A patch without effect is not a change.
func (s *store) patch(p objectPath, patch map[string]any) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[p.resource][key(p.namespace, p.name)]
	if !ok {
		return object{}, apierrors.NewNotFound(p.GroupResource(), p.name)
	}
	return s.replace(p, old, &unstructured.Unstructured{Object: merge(old.DeepCopy().Object, patch)})
}

// update replaces an object, except for its status if that is a subresource.
func (s *store) update(p objectPath, o *unstructured.Unstructured) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[p.resource][key(p.namespace, p.name)]
	if !ok {
		return object{}, apierrors.NewNotFound(p.GroupResource(), p.name)
	}
	if o.GetResourceVersion() == "" {
		o.SetResourceVersion(old.GetResourceVersion())
	}
	return s.replace(p, old, o)
}

// replace replaces an object by one that was derived from this revision of it. It keeps the
// fields that no client may change.
func (s *store) replace(p objectPath, old object, o *unstructured.Unstructured) (object, error) {
	if o.GetResourceVersion() != old.GetResourceVersion() {
		return object{}, apierrors.NewConflict(p.GroupResource(), p.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	keep := ""
	switch {
	case p.status:
		keep = "spec"
	case p.resource.status:
		keep = "status"
	}
	for _, field := range []string{keep, "kind", "apiVersion"} {
		if was, ok := old.Object[field]; ok {
			o.Object[field] = was
		} else {
			delete(o.Object, field)
		}
	}
	o.SetName(old.GetName())
	o.SetNamespace(old.GetNamespace())
	o.SetUID(old.GetUID())
	o.SetCreationTimestamp(old.GetCreationTimestamp())
	if o.GetName() != old.GetName() {
		return object{}, apierrors.NewBadRequest("metadata is not an object")
	}
	if same, err := encode(o); err != nil || bytes.Equal(same, old.json) {
		return old, err
	}
	return s.put(p.resource, watch.Modified, o, old)
}

// remove deletes an object immediately.
func (s *store) remove(p objectPath) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[p.resource][key(p.namespace, p.name)]
	if !ok {
		return object{}, apierrors.NewNotFound(p.GroupResource(), p.name)
	}
	return s.put(p.resource, watch.Deleted, old.DeepCopy(), old)
}

// put stores an object with the next revision, or deletes it, and wakes the watches.
func (s *store) put(r *resource, kind watch.EventType, o *unstructured.Unstructured, before object) (object, error) {
	fresh, err := revised(o, s.revision+1)
	if err != nil {
		return object{}, apierrors.NewBadRequest(err.Error())
	}
	s.revision++
	if s.objects[r] == nil {
		s.objects[r] = map[string]object{}
	}
	k := key(o.GetNamespace(), o.GetName())
	if kind == watch.Deleted {
		delete(s.objects[r], k)
	} else {
		s.objects[r][k] = fresh
	}
	s.events = append(s.events, event{kind, r, s.revision, fresh, before})
	if len(s.events) > s.history {
		s.events = slices.Delete(s.events, 0, len(s.events)-s.history)
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return fresh, nil
}

// revised makes an object of the store from o.
func revised(o *unstructured.Unstructured, revision int) (object, error) {
	o.SetResourceVersion(strconv.Itoa(revision))
	json, err := encode(o)
	return object{o, json}, err
}

// encode returns an object in one line.
func encode(o *unstructured.Unstructured) ([]byte, error) {
	json, err := o.MarshalJSON()
	return bytes.TrimSpace(json), err
}

// since returns the changes after a revision, the current revision, and a channel that is
// closed at the next change. A revision that is too old is an error that demands another list.
func (s *store) since(revision int) ([]event, int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.revision - len(s.events) // the newest that is no longer kept
	if revision < oldest {
		return nil, 0, nil, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", revision, oldest))
	}
	first := min(revision-oldest, len(s.events))
	return slices.Clone(s.events[first:]), s.revision, s.changed, nil
}

// merge applies a JSON merge patch (RFC 7396, section 2).
func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(target, name)
		case map[string]any:
			inner, _ := target[name].(map[string]any)
			target[name] = merge(inner, value)
		default:
			target[name] = value
		}
	}
	return target
}
