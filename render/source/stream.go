package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/yamllimit"
)

// MaxStream is the largest file that ParseAll accepts, in bytes: an export of all
// MachineConfigs of a cluster has tens of megabytes.
const MaxStream = 64 << 20

// maxLists bounds lists of lists.
const maxLists = 8

// ParseAll reads data, a stream of YAML documents or JSON in UTF-8, and returns its objects:
// the items of lists (kind List, PodList and so on) one by one, each with its positions in the
// file. Documents that are not mappings are skipped. It reports what makes the file unreadable,
// without any objects.
func ParseAll(file string, data []byte) ([]*Document, problem.List) {
	docs, p := parseAll(file, data)
	if p != nil {
		p.File, p.Severity = file, problem.Error
		return nil, problem.List{*p}
	}
	return docs, nil
}

// ParseWritten is ParseAll for a stream that people write: it reports nothing but the markers
// of a template.
func ParseWritten(file string, data []byte) ([]*Document, problem.List) {
	docs, list := ParseAll(file, data)
	if len(list) > 0 && list[0].Code == problem.Syntax && len(data) <= maxBisect {
		if p := templateProblem(data, list[0].Line); p != nil {
			p.File = file
			return nil, problem.List{*p}
		}
	}
	return docs, list
}

func parseAll(file string, data []byte) ([]*Document, *problem.Problem) {
	if len(data) > MaxStream {
		return nil, &problem.Problem{Line: 1, Column: 1, Code: problem.Unreadable,
			Found: fmt.Sprintf("%d bytes", len(data)), Expected: fmt.Sprintf("at most %d", MaxStream)}
	}
	if p := checkCharacters(data); p != nil {
		return nil, p
	}
	var out []*Document
	limits := yamllimit.New(len(data))
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, syntaxProblem(data, err)
		}
		if len(doc.Content) == 0 {
			continue
		}
		if p := limits.Check(doc.Content[0]); p != nil {
			return nil, p
		}
		out = flatten(out, &Document{File: file, data: data}, doc.Content[0], 0)
	}
}

// flatten appends an object, or the items of a list.
func flatten(out []*Document, of *Document, n *yaml.Node, depth int) []*Document {
	n = target(n)
	if n.Kind != yaml.MappingNode {
		return out
	}
	_, kind := child(n, step{name: "kind"})
	_, items := child(n, step{name: "items"})
	if kind == nil || items == nil || !strings.HasSuffix(target(kind).Value, "List") || depth == maxLists {
		return append(out, &Document{File: of.File, data: of.data, root: n})
	}
	for _, item := range target(items).Content {
		out = flatten(out, of, item, depth+1)
	}
	return out
}

// JSON returns the document as JSON. The error does not quote it.
func (d *Document) JSON() ([]byte, error) {
	var v any
	if err := d.root.Decode(&v); err != nil {
		return nil, errors.New("a value that is not representable in JSON")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return nil, errors.New("a value that is not representable in JSON")
	}
	return out, nil
}
