package nodes

import (
	"encoding/json"
	"slices"
	"strings"
	"unique"
)

// labels are the labels of an object, sorted by key. Nodes have dozens, most of them the
// same on thousands of nodes: a map and own strings per node would take most of the
// agent's memory.
type labels []label

type label struct{ Key, Value string }

// newLabels returns labels that share one copy of each string.
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

func (l labels) get(key string) string {
	i, ok := slices.BinarySearchFunc(l, key, func(l label, key string) int { return strings.Compare(l.Key, key) })
	if !ok {
		return ""
	}
	return l[i].Value
}

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

// UnmarshalJSON implements json.Unmarshaler.
func (l *labels) UnmarshalJSON(data []byte) error {
	var m map[string]string
	err := json.Unmarshal(data, &m)
	*l = newLabels(m)
	return err
}

// MarshalJSON implements json.Marshaler.
func (l labels) MarshalJSON() ([]byte, error) {
	return json.Marshal(l.only(func(string) bool { return true }))
}
