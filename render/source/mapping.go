package source

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

// checked returns the entries of a mapping that count, one for each name, and reports duplicate
// keys and bad merge keys. Only names that known accepts are shown.
func (d *decoder) checked(t *yaml.Node, known func(string) bool) []entry {
	if key, bad := badMerge(t); bad != nil {
		d.report(place([]step{{key: key}}, bad), problem.Problem{
			Code: problem.WrongType, Found: describe(bad),
			Expected: "a mapping, or a list of mappings, to merge",
		})
	}
	own := ownKeys(t)
	all := entries(t)
	first := make(map[string]int, len(all))
	kept := all[:0]
	for i, e := range all {
		name := e.key.Value
		line, seen := first[name]
		switch {
		case !seen:
			first[name] = e.key.Line
			kept = append(kept, e)
		case i < own:
			d.duplicate(e.key, line, known(name))
		}
	}
	return kept
}

// ownKeys counts the entries that are not from merge keys.
func ownKeys(t *yaml.Node) int {
	count := 0
	for i := 0; i+1 < len(t.Content); i += 2 {
		if key := target(t.Content[i]); key.Kind == yaml.ScalarNode && !isMerge(key) {
			count++
		}
	}
	return count
}

// duplicate reports a key that its mapping has already. The name of a key that vipgen does not
// read is not shown: the line is enough.
func (d *decoder) duplicate(key *yaml.Node, firstLine int, show bool) {
	p := problem.Problem{
		Code:  problem.DuplicateKey,
		Found: "a key for the second time",
		Hint:  fmt.Sprintf("first on line %d", firstLine),
	}
	if show {
		d.path = append(d.path, step{name: key.Value, key: key})
		p.Field = formatPath(d.path)
		d.path = d.path[:len(d.path)-1]
		p.Found = problem.Quote(key.Value) + " for the second time"
	} else {
		p.Field = formatPath(d.path)
	}
	p.File, p.Line, p.Column, p.Severity = d.file, key.Line, key.Column, problem.Error
	d.problems = append(d.problems, p)
}
