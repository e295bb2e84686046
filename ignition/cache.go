package ignition

import "sync"

// cache holds recently used values up to a bound of bytes. It is a pair of generations: a full
// young one becomes the old one, and the old one's values are dropped unless they were used in
// between. The zero value is ready to use.
type cache[K comparable, V any] struct {
	mu         sync.Mutex
	young, old map[K]sized[V]
	bytes      int
}

type sized[V any] struct {
	value V
	bytes int
}

// generation is the bound in bytes of one generation. Data that all clusters share takes less
// than a tenth of it.
const generation = 2 << 20

func (c *cache[K, V]) get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.young[k]
	if !ok {
		if e, ok = c.old[k]; ok {
			c.add(k, e)
		}
	}
	return e.value, ok
}

// put stores a value; bytes is the size of key and value.
func (c *cache[K, V]) put(k K, v V, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(k, sized[V]{v, bytes})
}

func (c *cache[K, V]) add(k K, e sized[V]) {
	if e.bytes > generation {
		return
	}
	if c.young == nil || c.bytes+e.bytes > generation {
		c.old, c.young, c.bytes = c.young, map[K]sized[V]{}, 0
	}
	c.young[k] = e
	c.bytes += e.bytes
}
