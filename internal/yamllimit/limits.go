// Package yamllimit bounds the unfolded size of users' YAML. Every reader of the offline half
// checks it before it decodes: a file of 1 MB with one text that is aliased 1,000 times is a
// gigabyte as JSON (hard case 53).
package yamllimit

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/vipgen/vipgen/api/problem"
)

const (
	// maxDepth is far above the nesting of a configuration.
	maxDepth = 100
	// maxAliased bounds the nodes that aliases add, so that a small file cannot unfold into a
	// huge one.
	maxAliased = 100_000
	// Aliases may add aliasedBase bytes and aliasedFactor times the size of a file, at most
	// maxAliasedBytes: hundreds of hosts may share a networkConfig, and thousands of small
	// files cannot unfold into much more than they are.
	aliasedBase     = 64 << 10
	aliasedFactor   = 16
	maxAliasedBytes = 4 << 20
	// maxKeys bounds a mapping: the YAML library compares each key with each.
	maxKeys = 10_000
)

// Limits measures the documents of one file.
type Limits struct {
	anchored map[*yaml.Node]extent // without nodes while still open
	aliased  extent                // added by aliases so far
	most     int                   // bytes that they may add
	problem  *problem.Problem
}

// extent measures a node with its aliases unfolded.
type extent struct{ nodes, bytes, height int }

// New returns the Limits of a file with that many bytes.
func New(size int) *Limits {
	return &Limits{most: min(maxAliasedBytes, aliasedBase+aliasedFactor*size)}
}

// Check reports nesting, aliases and mappings that only an attack contains, and an anchor that
// contains itself, with the position in the file. If it returns nil, every walk over the
// document ends.
func (l *Limits) Check(root *yaml.Node) *problem.Problem {
	l.anchored = map[*yaml.Node]extent{}
	l.walk(root, 0)
	return l.problem
}

func (l *Limits) walk(n *yaml.Node, depth int) extent {
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
	e := extent{nodes: 1, bytes: len(n.Value)}
	for _, c := range n.Content {
		inner := l.walk(c, depth+1)
		e.nodes += inner.nodes
		e.bytes += inner.bytes
		e.height = max(e.height, inner.height+1)
	}
	if n.Anchor != "" {
		l.anchored[n] = e
	}
	return e
}

func (l *Limits) alias(n *yaml.Node, depth int) extent {
	e := l.anchored[n.Alias]
	l.aliased.nodes += e.nodes
	l.aliased.bytes += e.bytes
	switch {
	case e.nodes == 0:
		l.fail(n, "an alias to the anchor that it is part of", "")
	case depth+e.height > maxDepth:
		l.deep(n)
	case l.aliased.nodes > maxAliased:
		l.fail(n, "aliases that unfold into too much", fmt.Sprintf("at most %d values from aliases", maxAliased))
	case l.aliased.bytes > l.most:
		l.fail(n, "aliases that unfold into too much", fmt.Sprintf("at most %d bytes from aliases in a file of this size", l.most))
	}
	return e
}

func (l *Limits) deep(n *yaml.Node) {
	l.fail(n, "nesting that is too deep", fmt.Sprintf("at most %d levels", maxDepth))
}

func (l *Limits) fail(n *yaml.Node, found, expected string) {
	l.problem = &problem.Problem{
		Line: n.Line, Column: n.Column,
		Code: problem.Syntax, Found: found, Expected: expected,
	}
}
