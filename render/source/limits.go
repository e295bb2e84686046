package source

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

const (
	// maxDepth is far above what a configuration nests.
	maxDepth = 100
	// maxAliased bounds what aliases may add to the nodes of the file, so
	// that a small file cannot unfold into a huge one.
	maxAliased = 100_000
	// maxKeys bounds a mapping: the YAML library compares each key with each.
	maxKeys = 10_000
)

// Limits reports what only an attack contains, of a document that is decoded in another
// way than by this package.
func Limits(file string, root *yaml.Node) problem.List {
	p := checkLimits(root)
	if p == nil {
		return nil
	}
	p.File, p.Severity = file, problem.Error
	return problem.List{*p}
}

// checkLimits refuses nesting, aliases and mappings that only an attack contains, and
// an anchor that contains itself. Afterwards any walk over the document ends.
func checkLimits(root *yaml.Node) *problem.Problem {
	l := &limits{anchored: map[*yaml.Node]extent{}}
	l.walk(root, 0)
	return l.problem
}

// extent measures a node with its aliases unfolded.
type extent struct{ nodes, height int }

type limits struct {
	anchored map[*yaml.Node]extent // without nodes while still open
	aliased  int
	problem  *problem.Problem
}

func (l *limits) walk(n *yaml.Node, depth int) extent {
	if l.problem != nil {
		return extent{}
	}
	if n.Kind == yaml.AliasNode {
		return l.alias(n, depth)
	}
	if depth > maxDepth {
		l.deep(n)
		return extent{}
	}
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		l.fail(n, fmt.Sprintf("a mapping of %d keys", len(n.Content)/2), fmt.Sprintf("at most %d", maxKeys))
		return extent{}
	}
	e := extent{nodes: 1}
	for _, c := range n.Content {
		inner := l.walk(c, depth+1)
		e.nodes += inner.nodes
		e.height = max(e.height, inner.height+1)
	}
	if n.Anchor != "" {
		l.anchored[n] = e
	}
	return e
}

func (l *limits) alias(n *yaml.Node, depth int) extent {
	e := l.anchored[n.Alias]
	l.aliased += e.nodes
	switch {
	case e.nodes == 0:
		l.fail(n, "an alias to the anchor that it is part of", "")
	case depth+e.height > maxDepth:
		l.deep(n)
	case l.aliased > maxAliased:
		l.fail(n, "aliases that unfold into too much", fmt.Sprintf("at most %d values from aliases", maxAliased))
	}
	return e
}

func (l *limits) deep(n *yaml.Node) {
	l.fail(n, "nesting that is too deep", fmt.Sprintf("at most %d levels", maxDepth))
}

func (l *limits) fail(n *yaml.Node, found, expected string) {
	l.problem = &problem.Problem{
		Line: n.Line, Column: n.Column,
		Code: problem.Syntax, Found: found, Expected: expected,
	}
}
