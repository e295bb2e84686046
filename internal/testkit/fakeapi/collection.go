// Package fakeapi is an API server for tests of what reads one: it lists and watches
// nodes, router pods and where the bootstrap host is, and does what no real one can be
// made to do at a given moment: refuse, stand still, not be ready. What a real one
// answers is tested with real ones (agent/nodes, TestRealAPIServer; lab/kubeapi).
package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// Collection is the objects of one kind, and all that ever happened to them.
type Collection struct {
	kind string

	mu      sync.Mutex
	objects map[string]json.RawMessage
	events  []string      // the n-th has resource version n+1
	changed chan struct{} // closed at the next event
}

// newCollection makes an empty one, of a kind such as "Node".
func newCollection(kind string) *Collection {
	return &Collection{kind: kind, objects: map[string]json.RawMessage{}, changed: make(chan struct{})}
}

// Set makes an object or replaces it, given as JSON without a resource version. What is
// no object with a name is a mistake of the test, which panics.
func (c *Collection) Set(object string) {
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		panic(fmt.Sprintf("%v in %s", err, object))
	}
	name := o["metadata"].(map[string]any)["name"].(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(name, o)
}

// Annotate merges the annotations of a patch into an object.
func (c *Collection) Annotate(name string, patch []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var object, change map[string]any
	if err := errors.Join(json.Unmarshal(c.objects[name], &object), json.Unmarshal(patch, &change)); err != nil {
		return err
	}
	metadata := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
	}
	from, _ := change["metadata"].(map[string]any)
	fresh, _ := from["annotations"].(map[string]any)
	maps.Copy(annotations, fresh)
	metadata["annotations"] = annotations
	c.put(name, object)
	return nil
}

// put gives an object the next resource version. c.mu is locked.
func (c *Collection) put(name string, o map[string]any) {
	event := "ADDED"
	if c.objects[name] != nil {
		event = "MODIFIED"
	}
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(len(c.events) + 1)
	data, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	c.objects[name] = data
	c.event(event, name)
}

// Remove deletes an object, if it is there.
func (c *Collection) Remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[name] != nil {
		c.event("DELETED", name)
		delete(c.objects, name)
	}
}

func (c *Collection) event(kind, name string) {
	c.events = append(c.events, fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, c.objects[name]))
	close(c.changed)
	c.changed = make(chan struct{})
}

// ServeHTTP answers a list or a watch.
func (c *Collection) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		c.watch(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	items := []json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		items = append(items, c.objects[name])
	}
	all, err := json.Marshal(items)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":%s}`, c.kind, len(c.events), all)
}

func (c *Collection) watch(w http.ResponseWriter, r *http.Request) {
	next, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.(http.Flusher).Flush()
	for {
		c.mu.Lock()
		events, changed := slices.Clone(c.events[min(next, len(c.events)):]), c.changed
		c.mu.Unlock()
		next += len(events)
		for _, e := range events {
			if _, err := io.WriteString(w, e); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
