package manifest

import "sync"

// key holds all inputs of a pod's manifest.
type key struct {
	name string
	PodParams
}

// memo caches rendered manifests of pods, up to a number.
type memo struct {
	mu    sync.Mutex
	texts map[key][]byte
}

// maxMade is more than the pods of any pool in a fleet whose clusters run a few releases
// on a few platforms: about a megabyte.
const maxMade = 256

var made memo

func (m *memo) get(k key) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.texts[k]
	return text, ok
}

func (m *memo) put(k key, text []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts == nil || len(m.texts) >= maxMade {
		m.texts = map[key][]byte{}
	}
	m.texts[k] = text
}
