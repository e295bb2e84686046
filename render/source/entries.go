package source

import (
	"github.com/vipgen/vipgen/internal/lists"
	"go.yaml.in/yaml/v3"
)

type entry struct {
	key, value *yaml.Node
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
}

// entries lists a mapping's own entries, then those of its merge keys ("<<"), nearest first, so
// that the first entry of a name counts. Keys that are not scalars are left out, and so are
// merge keys.
func entries(n *yaml.Node) []entry {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	list := make([]entry, 0, len(n.Content)/2)
	merges := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := target(n.Content[i])
		switch {
		case isMerge(key):
			merges = true
		case key.Kind == yaml.ScalarNode:
			list = append(list, entry{key, n.Content[i+1]})
		}
	}
	if !merges {
		return list
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(target(n.Content[i])) {
			continue
		}
		from := target(n.Content[i+1])
		if from.Kind == yaml.MappingNode {
			list = append(list, entries(from)...)
			continue
		}
		list = append(list, lists.FlatMap(from.Content, func(item *yaml.Node) []entry { return entries(target(item)) })...)
	}
	return list
}

// badMerge returns a merge key and the value that it cannot merge: neither a mapping nor a list
// of mappings, or an item of such a list. Nil where all can be merged.
func badMerge(n *yaml.Node) (key, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(target(n.Content[i])) {
			continue
		}
		value := target(n.Content[i+1])
		switch value.Kind {
		case yaml.MappingNode:
		case yaml.SequenceNode:
			for _, item := range value.Content {
				if target(item).Kind != yaml.MappingNode {
					return n.Content[i], item
				}
			}
		default:
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}
