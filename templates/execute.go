// Package templates executes the node templates that vipgen ships, and the templates of
// pods and cluster manifests. A node template is the same for every cluster; differences
// come from ClusterConfig and Node. The Go type with a template's data is next to it.
package templates

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// functions returns sprig's functions except those that depend on the clock, the host,
// the environment or random numbers: the same input must give the same bytes.
var functions = sync.OnceValue(sprig.HermeticTxtFuncMap)

// parse parses a template. Missing keys and fields are errors of its execution, never
// "<no value>". name appears in errors.
func parse(name, text string) (*template.Template, error) {
	return template.New(name).Option("missingkey=error").Funcs(functions()).Parse(text)
}

// Execute parses and executes a template. Consecutive blank lines, which directives leave
// behind, are collapsed to one.
func Execute(name, text string, data any) ([]byte, error) {
	t, err := parse(name, text)
	if err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return Run(t, data)
}

// ExecuteFile executes the template in a file.
func ExecuteFile(path string, data any) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Execute(filepath.Base(path), string(text), data)
}

// Set returns the templates of a directory, parsed at the first call.
type Set func() (*template.Template, error)

// Run executes a template by name, as Execute does. An unknown name is an error.
func (s Set) Run(name string, data any) ([]byte, error) {
	root, err := s()
	if err != nil {
		return nil, err
	}
	return Run(root.Lookup(name), data)
}

// ParseAll returns a Set that parses all templates of a directory, named after their
// files without ".tmpl". Templates can use each other's definitions.
func ParseAll(files embed.FS) Set {
	return sync.OnceValues(func() (*template.Template, error) {
		root, err := parse("", "")
		if err != nil {
			return nil, err
		}
		names, err := fs.Glob(files, "*.tmpl")
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := files.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if _, err := root.New(strings.TrimSuffix(name, ".tmpl")).Parse(string(text)); err != nil {
				return nil, fmt.Errorf("template %s: %w", name, err)
			}
		}
		return root, nil
	})
}

// Run executes a parsed template, as Execute does. A nil template, Lookup's result for an
// unknown name, is an error.
func Run(t *template.Template, data any) ([]byte, error) {
	if t == nil {
		return nil, errors.New("no template of that name")
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("template %s: %w", t.Name(), err)
	}
	return collapseBlankLines(b.Bytes()), nil
}

func collapseBlankLines(text []byte) []byte {
	out := make([]byte, 0, len(text))
	var blank bool
	for line := range bytes.Lines(text) {
		line = bytes.TrimRight(line, " \t\n")
		if len(line) == 0 {
			blank = true
			continue
		}
		if blank && len(out) > 0 {
			out = append(out, '\n')
		}
		blank = false
		out = append(append(out, line...), '\n')
	}
	return out
}
