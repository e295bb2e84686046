// Package templates executes the templates that vipgen ships to nodes and the
// ones from which it makes pods and cluster manifests. A node template is the
// same for every cluster; what differs comes from ClusterConfig and Node.
// Beside each template stands the Go type that feeds it.
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

// functions are sprig's without those that look at the clock, the host, the
// environment or random numbers: the same input must give the same bytes.
var functions = sync.OnceValue(sprig.HermeticTxtFuncMap)

// parse reads a template. A key or field that does not exist is an error when
// it is executed, never "<no value>". name appears in errors.
func parse(name, text string) (*template.Template, error) {
	return template.New(name).Option("missingkey=error").Funcs(functions()).Parse(text)
}

// Execute parses and executes a template. Blank lines that directives leave
// behind are collapsed to one, so that the output reads like a file that a
// person wrote.
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

// Set is the templates of a folder, parsed when they are first asked for.
type Set func() (*template.Template, error)

// Run executes the template with that name as Execute does. It is an error that
// there is none.
func (s Set) Run(name string, data any) ([]byte, error) {
	root, err := s()
	if err != nil {
		return nil, err
	}
	return Run(root.Lookup(name), data)
}

// ParseAll reads all templates of a folder once, each by the name of its file
// without ".tmpl". Templates see each other's definitions.
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

// Run executes a parsed template as Execute does. nil is an error, as what
// Lookup gives for an unknown name.
func Run(t *template.Template, data any) ([]byte, error) {
	if t == nil {
		return nil, errors.New("no template of that name")
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("template %s: %w", t.Name(), err)
	}
	return tidy(b.Bytes()), nil
}

func tidy(text []byte) []byte {
	out := make([]byte, 0, len(text))
	blank := true
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
