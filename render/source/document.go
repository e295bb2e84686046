package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
	"github.com/vipgen/vipgen/internal/yamllimit"
)

// MaxSize is the largest file that Parse accepts, in bytes.
const MaxSize = 4 << 20

// File is an input with its name in reports.
type File struct {
	Name string
	Data []byte
}

// Document is one parsed YAML file.
type Document struct {
	// File is the name under which problems are reported.
	File string

	root *yaml.Node
	// parts are the sources of a view; nil for a file.
	parts []part
	data  []byte
}

// Parse reads data, which must hold one YAML document in UTF-8, and reports what makes it
// unreadable. The document is nil when there is any problem. The file name appears in problems
// only.
func Parse(file string, data []byte) (*Document, problem.List) {
	d := &Document{File: file}
	if p := d.load(data); p != nil {
		p.File, p.Severity = file, problem.Error
		return nil, problem.List{*p}
	}
	return d, nil
}

func (d *Document) load(data []byte) *problem.Problem {
	if len(data) > MaxSize {
		return &problem.Problem{
			Line: 1, Column: 1,
			Code:     problem.Unreadable,
			Found:    fmt.Sprintf("%d bytes", len(data)),
			Expected: fmt.Sprintf("at most %d", MaxSize),
		}
	}
	if p := checkCharacters(data); p != nil {
		return p
	}
	root, err := d.read(data)
	if err != nil {
		mistake := syntaxProblem(upToMistake(data, err))
		if p := templateProblem(data, mistake.Line); p != nil && !errors.As(err, new(errSecond)) {
			return p
		}
		return mistake
	}
	if root == nil || isNull(root) {
		return &problem.Problem{
			Line: 1, Column: 1,
			Code:     problem.Syntax,
			Found:    "an empty file",
			Expected: "one YAML document",
		}
	}
	d.root, d.data = root, data
	return yamllimit.New(len(data)).Check(root)
}

// errSecond is the position of a second document.
type errSecond struct{ line, column int }

func (errSecond) Error() string { return "more than one document" }

// read parses the first document and requires the rest to be empty, as after a closing "---".
func (d *Document) read(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root *yaml.Node
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		if len(doc.Content) == 0 {
			continue
		}
		switch content := doc.Content[0]; {
		case root == nil:
			root = content
		case !isNull(content):
			return nil, errSecond{content.Line, content.Column}
		}
	}
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// target follows an alias to its node.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
