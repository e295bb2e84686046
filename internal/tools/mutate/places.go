package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
)

// file is a source file and the places in it that can be changed.
type file struct {
	path, name string // name of the package
	source     []byte
	set        *token.FileSet
	mutants    []*mutant
}

// mutant is a change at one place. In write, a part of the source is written by text, with
// the mutants in it.
type mutant struct {
	id         int // if it is chosen
	file       *file
	begin, end int
	line       int
	what       string
	write      func(id string, text func(begin, end int) string) string
	invalid    bool
	reached    []reach
}

// name returns the name in the list of equivalents: without the line, which other changes move.
func (m *mutant) name() string {
	parts := strings.Split(m.file.path, "/")
	return strings.Join(parts[max(len(parts)-2, 0):], "/") + ": " + m.what
}

// reachedBy returns how many tests run the mutant's place.
func (m *mutant) reachedBy() string {
	tests := 0
	for _, r := range m.reached {
		tests += len(r.tests)
	}
	return fmt.Sprintf(" (tests that reach it: %d)", tests)
}

// swaps are operators and what they become.
var swaps = map[token.Token]token.Token{
	token.LAND: token.LOR, token.LOR: token.LAND, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.SUB: token.ADD, token.ADD: token.SUB,
}

func parse(path string) (*file, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, source: source, set: token.NewFileSet()}
	tree, err := parser.ParseFile(f.set, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f.name = tree.Name.Name
	ast.Inspect(tree, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && (d.Tok == token.CONST || d.Tok == token.TYPE) {
			return false
		}
		if _, ok := n.(*ast.ArrayType); ok {
			return false
		}
		f.places(n)
		return true
	})
	return f, nil
}

func (f *file) offset(p token.Pos) int { return f.set.Position(p).Offset }

func (f *file) add(n ast.Node, what string, write func(id string, text func(begin, end int) string) string) {
	what = strings.Join(strings.Fields(what), " ")
	f.mutants = append(f.mutants, &mutant{file: f, begin: f.offset(n.Pos()), end: f.offset(n.End()), line: f.set.Position(n.Pos()).Line, what: what, write: write})
}

// places adds the mutants of one node.
func (f *file) places(n ast.Node) {
	src := func(n ast.Node) string { return string(f.source[f.offset(n.Pos()):f.offset(n.End())]) }
	part := func(n ast.Node, text func(int, int) string) string {
		return text(f.offset(n.Pos()), f.offset(n.End()))
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		to, ok := swaps[n.Op]
		if !ok || n.Op == token.ADD && !number(n.X) && !number(n.Y) { // the latter likely joins texts
			return
		}
		f.add(n, src(n.X)+" "+n.Op.String()+" → "+to.String()+" "+src(n.Y), func(id string, text func(int, int) string) string {
			x, y := part(n.X, text), part(n.Y, text)
			if n.Op == token.ADD || n.Op == token.SUB {
				return "mutantPick(" + id + ", " + x + n.Op.String() + y + ", " + x + to.String() + y + ")"
			}
			return "(mutantOn(" + id + ") && (" + x + to.String() + y + ") || !mutantOn(" + id + ") && (" + x + n.Op.String() + y + "))"
		})
	case *ast.IfStmt:
		f.add(n.Cond, "if !("+src(n.Cond)+")", func(id string, text func(int, int) string) string {
			return "(" + part(n.Cond, text) + ") != mutantOn(" + id + ")"
		})
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n, "without !: "+src(n), func(id string, text func(int, int) string) string {
				return "((!" + part(n.X, text) + ") != mutantOn(" + id + "))"
			})
		}
	case *ast.BranchStmt:
		if n.Tok == token.CONTINUE || n.Tok == token.BREAK && n.Label == nil {
			to := map[bool]string{true: "break", false: "continue"}[n.Tok == token.CONTINUE]
			label := ""
			if n.Label != nil {
				label = " " + n.Label.Name
			}
			f.add(n, src(n)+" → "+to, func(id string, text func(int, int) string) string {
				return "if mutantOn(" + id + ") { " + to + label + " }; " + text(f.offset(n.Pos()), f.offset(n.End()))
			})
		}
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			f.add(n, n.Name+" inverted", func(id string, _ func(int, int) string) string { return "(" + n.Name + " != mutantOn(" + id + "))" })
		}
	case *ast.BlockStmt:
		for _, s := range n.List {
			f.statement(s, src)
		}
	case *ast.CaseClause:
		for _, s := range n.Body {
			f.statement(s, src)
		}
	}
}

// statement adds a mutant without a statement, unless it is a log's, a defer or one that Go needs.
func (f *file) statement(s ast.Stmt, src func(ast.Node) string) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if strings.HasPrefix(src(s), "panic(") || strings.Contains(strings.ToLower(src(s)), "log") {
			return
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
	case *ast.IncDecStmt:
	default:
		return
	}
	f.add(s, "without "+src(s), func(id string, text func(int, int) string) string {
		return "if !mutantOn(" + id + ") { " + text(f.offset(s.Pos()), f.offset(s.End())) + " }"
	})
}

func number(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.INT
}

// text returns the source with all chosen mutants.
func (f *file) text() string {
	var chosen []*mutant
	for _, m := range f.mutants {
		if m.id != 0 && !m.invalid {
			chosen = append(chosen, m)
		}
	}
	// An outer one is before those in it.
	slices.SortStableFunc(chosen, func(x, y *mutant) int {
		if x.begin != y.begin {
			return x.begin - y.begin
		}
		return y.end - x.end
	})
	return f.part(chosen, 0, len(f.source))
}

// part returns a part of the source with the mutants in it.
func (f *file) part(chosen []*mutant, begin, end int) string {
	var out strings.Builder
	at := begin
	for i, m := range chosen {
		if m.begin < at || m.end > end {
			continue
		}
		out.Write(f.source[at:m.begin])
		inner := chosen[i+1:]
		out.WriteString(m.write(strconv.Itoa(m.id), func(begin, end int) string { return f.part(inner, begin, end) }))
		at = m.end
	}
	out.Write(f.source[at:end])
	return out.String()
}
