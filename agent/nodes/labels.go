package nodes

import (
	"encoding/json"
	"slices"
	"strings"
	"unique"
)

// labels are those of an object, sorted by key. Nodes have dozens, most of which
// are the same on thousands of nodes: with a map for each node, and strings of
// its own, they would take most of the agent's memory.
type labels []label

type label struct{ Key, Value string }

// newLabels keeps one copy of each string for all nodes.
func newLabels(m map[string]string) labels {
	if len(m) == 0 {
		return nil
	}
	l := make(labels, 0, len(m))
	for k, v := range m {
		l = append(l, label{unique.Make(k).Value(), unique.Make(v).Value()})
	}
	slices.SortFunc(l, func(a, b label) int { return strings.Compare(a.Key, b.Key) })
	return l
}

// get returns the value of a label, or nothing.
func (l labels) get(key string) string {
	i, ok := slices.BinarySearchFunc(l, key, func(l label, key string) int { return strings.Compare(l.Key, key) })
	if !ok {
		return ""
	}
	return l[i].Value
}

// only returns the labels with the keys that are wanted.
func (l labels) only(wanted func(key string) bool) map[string]string {
	var m map[string]string
	for _, x := range l {
		if !wanted(x.Key) {
			continue
		}
		if m == nil {
			m = map[string]string{}
		}
		m[x.Key] = x.Value
	}
	return m
}

// UnmarshalJSON reads an object of strings.
func (l *labels) UnmarshalJSON(data []byte) error {
	var m map[string]string
	err := json.Unmarshal(data, &m)
	*l = newLabels(m)
	return err
}

// MarshalJSON writes an object of strings.
func (l labels) MarshalJSON() ([]byte, error) {
	return json.Marshal(l.only(func(string) bool { return true }))
}
