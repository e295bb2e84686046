package source

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

// step is one part of a field path: a key of a mapping or, when key is nil
// and name empty, an index of a list.
type step struct {
	name  string
	index int
	// key is the node of the key where the path was walked in a document.
	key *yaml.Node
}

// formatPath returns "a.b[0].c"; a key that is not a plain word is quoted, as
// in `labels["example.com/rack"]`.
func formatPath(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		switch {
		case s.name == "" && s.key == nil:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case !isWord(s.name):
			b.WriteString("[" + problem.Quote(s.name) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// parsePath parses the output of formatPath. It stops at the first step that it cannot parse,
// so that the nearest parent is found.
func parsePath(field string) []step {
	var steps []step
	for field != "" {
		switch {
		case strings.HasPrefix(field, `["`):
			quoted, err := strconv.QuotedPrefix(field[1:])
			if err != nil {
				return steps
			}
			name, _ := strconv.Unquote(quoted)
			steps = append(steps, step{name: name, key: &yaml.Node{}})
			field = strings.TrimPrefix(field[1+len(quoted):], "]")
		case field[0] == '[':
			digits, rest, _ := strings.Cut(field[1:], "]")
			i, err := strconv.Atoi(digits)
			if err != nil {
				return steps
			}
			steps = append(steps, step{index: i})
			field = rest
		default:
			field = strings.TrimPrefix(field, ".")
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			if end == 0 {
				return steps
			}
			steps = append(steps, step{name: field[:end]})
			field = field[end:]
		}
	}
	return steps
}

func isWord(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return false
		}
	}
	return s != ""
}
