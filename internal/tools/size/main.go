// Command size prints the size of Go code as a table of Markdown: lines, packages and exported
// names, by folder.
//
//	go run ./internal/tools/size [-depth N] [DIR]
//
// It compiles nothing, so DIR may be any checkout:
//
//	git worktree add /tmp/before COMMIT && go run ./internal/tools/size /tmp/before
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// size is the size of a folder.
type size struct {
	lines, tests, exported int
	packages               map[string]bool
}

func (s *size) add(o *size) {
	s.lines, s.tests, s.exported = s.lines+o.lines, s.tests+o.tests, s.exported+o.exported
	maps.Copy(s.packages, o.packages)
}

func main() {
	depth := flag.Int("depth", 1, "levels of folders that have a row each")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	rows := map[string]*size{}
	if err := walk(root, *depth, rows); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
	print(rows)
}

// walk measures all Go files below a folder, into rows by folder.
func walk(root string, depth int, rows map[string]*size) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		folders := strings.Split(filepath.ToSlash(filepath.Dir(name)), "/")
		folder := strings.Join(folders[:min(depth, len(folders))], "/")
		if rows[folder] == nil {
			rows[folder] = &size{packages: map[string]bool{}}
		}
		return rows[folder].file(path, filepath.Dir(name))
	})
}

// file adds a file of a package.
func (s *size) file(path, pkg string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := bytes.Count(data, []byte("\n"))
	if strings.HasSuffix(path, "_test.go") {
		s.tests += lines
		return nil
	}
	s.lines += lines
	s.packages[pkg] = true
	f, err := parser.ParseFile(token.NewFileSet(), path, data, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range f.Decls {
		s.exported += exported(d)
	}
	return nil
}

// exported returns the number of exported names in a declaration: functions, methods, types,
// constants and variables.
func exported(d ast.Decl) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		count(d.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				count(spec.Name)
			case *ast.ValueSpec:
				count(spec.Names...)
			}
		}
	}
	return n
}

func print(rows map[string]*size) {
	fmt.Print("| folder | packages | lines | lines of tests | exported names |\n|---|---:|---:|---:|---:|\n")
	all := &size{packages: map[string]bool{}}
	line := func(name string, s *size) {
		fmt.Printf("| %s | %d | %d | %d | %d |\n", name, len(s.packages), s.lines, s.tests, s.exported)
	}
	for _, folder := range slices.Sorted(maps.Keys(rows)) {
		line(folder, rows[folder])
		all.add(rows[folder])
	}
	line("all", all)
}
